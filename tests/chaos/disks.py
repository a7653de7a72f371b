"""A small disk for each nats-server, where the machine lets us mount one: it can be full.

It is a tmpfs whose size is a limit only. To fill it the limit is set to what is in it; what was
written stays, and nothing more can be.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SIZE = "2g"
"""More than a run of an hour stores, and nothing until it does."""

LEFT_BYTES = 64 * 1024
"""What is left of a full disk: less than a block of a stream."""


class Disk:
    """Mounted on `place`, which is made."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._mounted = False

    @staticmethod
    def possible() -> bool:
        """Whether this machine lets us mount one."""
        if os.geteuid() != 0 or shutil.which("mount") is None:
            return False
        with tempfile.TemporaryDirectory(prefix="chaos-disk-") as folder:
            disk = Disk(Path(folder) / "try")
            try:
                disk.mount()
                disk.free()
            except (subprocess.CalledProcessError, OSError):
                return False
            finally:
                disk.unmount()
        return True

    def mount(self) -> None:
        self.place.mkdir(parents=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "crewlet-chaos", str(self.place))
        self._mounted = True

    def fill(self) -> None:
        """From now on nothing is stored."""
        stat = os.statvfs(self.place)
        used = (stat.f_blocks - stat.f_bfree) * stat.f_frsize
        self._resize(str(used + LEFT_BYTES))

    def free(self) -> None:
        """There is room again."""
        self._resize(SIZE)

    def unmount(self) -> None:
        if self._mounted:
            _run("umount", str(self.place))
            self._mounted = False

    def _resize(self, size: str) -> None:
        _run("mount", "-o", f"remount,size={size}", str(self.place))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=10)
