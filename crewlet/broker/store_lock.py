"""One process per broker folder: nats-server itself takes no lock, and two on one folder both
acknowledge the same sequence (design: measured)."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import Final

from crewlet.errors import NodeRefused

NAME: Final = "lock"
PATIENCE_S: Final = 2.0
"""How long the child of a holder that died may take to follow it."""


class StoreLock:
    """An flock that the broker's child inherits: it is held until both processes are gone."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._fd: int | None = None

    @property
    def fd(self) -> int:
        assert self._fd is not None, "taken before anything is started"
        return self._fd

    @property
    def held(self) -> bool:
        return self._fd is not None

    async def take(self) -> None:
        """NodeRefused, naming the holder, where another process has it: at once, or after
        PATIENCE_S seconds where that process is dead."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await self._lock(fd)
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    async def _lock(self, fd: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not _locked(fd):
            holder = _holder(fd)
            if _alive(holder) or time.monotonic() > deadline:
                raise NodeRefused(
                    f"the broker's folder {self._path.parent} is held by process "
                    f"{holder or 'unknown'}: stop it, or give this node another folder"
                )
            await asyncio.sleep(0.02)

    def free(self) -> None:
        """Idempotent. The file stays: removing it would let two processes lock two files."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _locked(fd: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _holder(fd: int) -> int | None:
    text = os.pread(fd, 32, 0)
    return int(text) if text.isdigit() else None


def _alive(pid: int | None) -> bool:
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
