"""What every test run has: the contract's numbers (tests/certified/plugin.py)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# A run in the background of a shell is born with SIGINT ignored, and so would be the nodes
# that it starts and sends one to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `pytest` alone does not put the repository's own folder on the path; `python -m pytest` does.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.certified import plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    plugin.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    plugin.configure(config)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """One loop for a module: an embedded server belongs to the loop that started it."""
    with asyncio.Runner() as runner:
        yield runner
