"""The data folder: private to this user, held by one process at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from crewlet.errors import NodeRefused

LOCK = "node.lock"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class DataFolder:
    """Made 0700 where it is missing, and locked from `hold` to `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: IO[str] | None = None

    def hold(self) -> None:
        """Raises NodeRefused naming the process that holds it, or why it cannot be used."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = self._open()
        except OSError as error:
            raise NodeRefused(
                f"the data folder {self.path} cannot be used: {error.strerror}; "
                "choose another with --data"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = lock.read().strip() or "unknown"
            lock.close()
            raise NodeRefused(
                f"the data folder {self.path} is held by a running node (pid {pid}); "
                "stop it, or choose another folder with --data"
            ) from None
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def _open(self) -> IO[str]:
        fd = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(fd, "r+")

    @property
    def seal(self) -> str:
        """What two processes share only if they held this very folder one after the other, on
        one boot of one host: a copy of the folder has another inode, another host another
        boot. Empty where the host does not say."""
        try:
            boot = BOOT_ID.read_text().strip()
        except OSError:
            return ""
        if self._lock is None:
            return ""
        lock = os.fstat(self._lock.fileno())
        return f"{boot}:{lock.st_dev}:{lock.st_ino}"

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
