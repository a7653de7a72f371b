"""A full disk: the server gives up what it could not write, and takes it up in a new process only.

Measured on nats-server 2.15.1: after one write that found no space the stream answers no publish
any more, also when there is space again; what it had acknowledged stays readable, and a server
that is started again on the folder goes on from there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, TypeAlias

from crewlet.broker.server_log import LogTail

LOOK_S: Final = 2.0
"""How often it is looked for."""

ROOM_BYTES: Final = 64 * 2**20
"""Enough for the largest message several times over; of a small disk a quarter is enough."""

_FULL: Final = ("no space left on device", "disk quota exceeded", "out of space")

Finding: TypeAlias = Literal["fine", "full", "still full", "room again"]


def finding(lines: str, *, was_full: bool, free: int, total: int) -> Finding:
    """What new lines of the server's log and the disk's `free` and `total` bytes tell."""
    said = any(words in lines for words in _FULL)
    if not was_full:
        return "full" if said else "fine"
    return "room again" if free >= min(ROOM_BYTES, total // 4) else "still full"


class DiskWatch:
    """Reads a server's log as it grows, from where it stands now."""

    def __init__(
        self,
        log: Path,
        folder: Path,
        usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage,
    ) -> None:
        self._log = LogTail(log)
        self._folder = folder
        self._usage = usage
        self.full = False

    def look(self) -> Finding:
        """What is new; reads a few kilobytes of a log at most."""
        total, _, free = self._usage(self._folder)
        found = finding(self._log.new_lines().lower(), was_full=self.full, free=free, total=total)
        self.full = found in ("full", "still full")
        return found
