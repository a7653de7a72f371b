"""Children of this process: ended at once when it must leave, and reaped as process 1.

Processes that outlive their parent are handed to process 1; unwaited, each stays a zombie.
Only children that this process did not start are reaped: asyncio waits for its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Final

import psutil
import structlog

PERIOD_S: Final = 1.0

log = structlog.get_logger(__name__)


def reap_orphans() -> None:
    """Begin, if this is process 1; on the running loop, for as long as it runs."""
    if os.getpid() == 1:
        _Reaper(asyncio.get_running_loop()).sweep()


def end_children() -> None:
    """End every child and its group: commands of running turns, and an embedded broker.
    Whatever was acknowledged is on the disk; whatever was not comes again."""
    for child in psutil.Process().children():
        for end in (os.killpg, os.kill):
            try:
                end(child.pid, signal.SIGKILL)
            except OSError:
                continue


class _Reaper:
    """A zombie that is still there a period later is nobody's: its own starter would have
    waited for it at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._seen: frozenset[int] = frozenset()

    def sweep(self) -> None:
        zombies = frozenset(child.pid for child in psutil.Process().children() if _is_zombie(child))
        for pid in sorted(zombies & self._seen):
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
        self._seen = zombies
        self._loop.call_later(PERIOD_S, self.sweep)


def _is_zombie(child: psutil.Process) -> bool:
    try:
        return bool(child.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
