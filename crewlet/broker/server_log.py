"""The log of an embedded server, read as it grows: some of what it says it says nowhere else."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

MOST_READ: Final = 256 * 1024


class LogTail:
    """From where the log stands now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = _size(path)

    def new_lines(self) -> str:
        """What was written since, the last MOST_READ bytes of it at most; a few kilobytes as a
        rule. A log that is shorter now is another one."""
        size = _size(self._path)
        begin = 0 if size < self._read_to else max(self._read_to, size - MOST_READ)
        self._read_to = size
        if begin == size:
            return ""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            file.seek(begin)
            return file.read(size - begin).decode(errors="replace")
        return ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
