"""Binding the socket: one owner, mode 0600, no remains of a dead node, and who calls."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import stat
from pathlib import Path

from actors.admin.verbs import Caller


class AlreadyServed(Exception):
    """A live process answers on this socket, or something that is no socket lies there."""


def bind(path: Path) -> socket.socket:
    """A bound, non-blocking socket at `path`, mode 0600 from its first moment.

    A socket that nobody listens on any more is removed. Raises AlreadyServed.
    """
    remove_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux gives the new file the mode of the socket itself: there is no moment in which
        # somebody else may connect. The chmod after it is for the systems that do not.
        with contextlib.suppress(OSError):
            os.fchmod(bound.fileno(), 0o600)
        bound.bind(os.fspath(path))
        path.chmod(0o600)
    except BaseException:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


def remove_stale(path: Path) -> None:
    """Remove what a dead node left. Raises AlreadyServed where it is not dead, not a socket,
    or not ours to remove."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise AlreadyServed(f"{path} is in the way and is no socket: move it away")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            raise AlreadyServed(f"{path}: {error.strerror or error}") from None
    raise AlreadyServed(f"another process answers on {path}")


def identity(path: Path) -> tuple[int, int] | None:
    """Which file this is, so that a stop removes its own socket and no successor's."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def caller(uid: int) -> Caller:
    """This user by name, where the system has one for them."""
    try:
        return Caller(uid, pwd.getpwuid(uid).pw_name)
    except (KeyError, OverflowError):
        return Caller(uid, f"uid {uid}")
