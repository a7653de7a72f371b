"""The process at the other end of a Unix socket, as the kernel knows it."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Final

CREDENTIALS: Final = "3i"
"""A process, a user and a group: the caller's as it connected, a server's as it began to listen."""


def uid_of(connection: socket.socket) -> int:
    """Its user."""
    return _credentials(connection)[1]


def pid_of(connection: socket.socket) -> int:
    """Its id; 0 where it lives in a container that we do not look into."""
    return _credentials(connection)[0]


def is_stopped(pid: int) -> bool:
    """Whether it was stopped (SIGSTOP, Ctrl-Z), and does nothing until it is told to go on. False
    where there is no telling."""
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    _name, _, rest = told.rpartition(b")")  # a process may be called anything
    return rest.split()[:1] == [b"T"]


def _credentials(connection: socket.socket) -> tuple[int, int, int]:
    size = struct.calcsize(CREDENTIALS)
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid, uid, gid = struct.unpack(CREDENTIALS, told)
    return pid, uid, gid
