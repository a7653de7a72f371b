"""What every test run has: the contract's numbers (tests/certified/plugin.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# `pytest` alone does not put the repository's own folder on the path; `python -m pytest` does.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.certified import plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    plugin.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    plugin.configure(config)
