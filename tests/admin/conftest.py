"""A temporary folder with a short path: pytest's own names leave no room for a socket's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cr-", dir="/tmp") as folder:
        yield Path(folder)
