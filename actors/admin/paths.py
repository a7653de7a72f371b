"""Where the socket of a data folder lies.

A Unix socket's path may have about 107 bytes, a data folder's any number. The socket lies in
the data folder while its path fits; otherwise in a folder that only this user may enter,
under a digest of the data folder's path, so that two data folders never share one.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_PATH_BYTES: Final = 100
"""Linux takes 107, BSD and macOS 103."""

SOCKET_NAME: Final = "crewlet.sock"


class UnsafeFolder(Exception):
    """A folder for the socket that somebody else owns, may enter, or has put a link in for."""


def socket_path(data_dir: Path) -> Path:
    """Where a node of this user binds; makes the private folder where one is needed.

    Raises UnsafeFolder where that folder is not safely ours.
    """
    near = _near(data_dir)
    if _fits(near):
        return near
    for folder in _runtime_folders(os.getuid()):
        path = folder / _short_name(data_dir)
        if _fits(path) and _is_private(folder, os.getuid()):
            return path
    folder = _tmp_folder(os.getuid())
    folder.mkdir(mode=0o700, exist_ok=True)
    check_private(folder, os.getuid())
    return folder / _short_name(data_dir)


def socket_candidates(data_dir: Path) -> Iterator[Path]:
    """Where a client looks. The node may have been started with another environment, or by
    the data folder's owner where the client is root: so there is more than one place."""
    near = _near(data_dir)
    if _fits(near):
        yield near
        return
    for uid in dict.fromkeys((os.getuid(), owner_of(data_dir))):
        for folder in (*_runtime_folders(uid), _tmp_folder(uid)):
            if _is_private(folder, uid):
                yield folder / _short_name(data_dir)


def owner_of(data_dir: Path) -> int:
    """The data folder's owner; ourselves where there is no folder yet."""
    try:
        return data_dir.stat().st_uid
    except OSError:
        return os.getuid()


def check_private(folder: Path, uid: int) -> None:
    """Raises UnsafeFolder unless this is a real folder, of this user, that nobody else enters."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafeFolder(f"{folder} is no folder (a link is refused): remove it")
    if found.st_uid != uid:
        raise UnsafeFolder(f"{folder} belongs to user {found.st_uid}, not to {uid}: remove it")
    if found.st_mode & 0o077:
        raise UnsafeFolder(
            f"{folder} is open to others (mode {stat.S_IMODE(found.st_mode):04o}): "
            f"chmod 700 {folder}"
        )


def _near(data_dir: Path) -> Path:
    return data_dir.resolve() / SOCKET_NAME


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= MAX_PATH_BYTES


def _short_name(data_dir: Path) -> str:
    digest = hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()
    return f"crewlet-{digest[:24]}.sock"


def _runtime_folders(uid: int) -> Iterator[Path]:
    """XDG_RUNTIME_DIR is per login session; the environment's word counts for ourselves only."""
    told = os.environ.get("XDG_RUNTIME_DIR", "")
    if uid == os.getuid() and told.startswith("/"):
        yield Path(told)
    yield Path(f"/run/user/{uid}")


def _tmp_folder(uid: int) -> Path:
    """Not $TMPDIR: a node and its client must come to the same name."""
    return Path(f"/tmp/crewlet-{uid}")  # noqa: S108 - made 0700 and checked before use


def _is_private(folder: Path, uid: int) -> bool:
    try:
        check_private(folder, uid)
    except (OSError, UnsafeFolder):
        return False
    return True
