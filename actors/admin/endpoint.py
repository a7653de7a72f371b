"""The endpoint of a running node: a Unix socket that answers a closed table of verbs."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import structlog

from actors.admin import binding, peer
from actors.admin.binding import AlreadyServed
from actors.admin.connection import Connection
from actors.admin.frames import MAX_REQUEST_BYTES, Failure
from actors.admin.paths import socket_path
from actors.admin.verbs import AnyVerb

__all__ = ["AlreadyServed", "Endpoint"]

MAX_CONNECTIONS: Final = 64
"""More callers than a person and their scripts have at once; more are told so."""

FINISH_S: Final = 2.0
"""How long a stop waits for verbs that have an end of their own."""

_log = structlog.get_logger("actors.admin")


class Endpoint:
    """Serves `verbs` from `start` to `stop`, to this user and to root only.

    Arguments are never logged. `explain` turns an exception of the caller's own kind into
    the failure that the client gets; any other exception is `internal`.
    """

    def __init__(
        self,
        data_dir: Path,
        verbs: Mapping[str, AnyVerb],
        *,
        explain: Callable[[Exception], Failure | None] = lambda error: None,
    ) -> None:
        self._data_dir = data_dir
        self._verbs = dict(verbs)
        self._explain = explain
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._identity: tuple[int, int] | None = None
        self._running: dict[asyncio.Task[None], Connection] = {}

    @property
    def path(self) -> Path | None:
        """Where the socket lies; None before `start` and after `stop`."""
        return self._path

    async def start(self) -> None:
        """Bind and serve. Raises AlreadyServed or UnsafeFolder, and leaves nothing behind."""
        self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = socket_path(self._data_dir)
        bound = binding.bind(path)
        self._path, self._identity = path, binding.identity(path)
        self._server = await asyncio.start_unix_server(
            self._serve, sock=bound, limit=MAX_REQUEST_BYTES
        )

    async def stop(self) -> None:
        """End all callers: followers at once and cleanly, the others after FINISH_S. Idempotent."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        self._remove()
        for connection in self._running.values():
            connection.end_follower()
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=FINISH_S)
        for connection in self._running.values():
            connection.end_late()
        if self._running:
            # A verb that does not let go is left behind: it must not hold up the node's exit.
            await asyncio.wait(tuple(self._running), timeout=FINISH_S)

    def _remove(self) -> None:
        path, self._path = self._path, None
        if path is not None and binding.identity(path) == self._identity:
            path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        caller = binding.caller(_peer(writer.get_extra_info("socket")))
        connection = Connection(reader, writer, self._verbs, self._explain, caller)
        self._running[task] = connection
        try:
            if (refusal := self._refusal(caller.uid)) is not None:
                await connection.refuse(refusal)
            else:
                await connection.serve()
        finally:
            del self._running[task]

    def _refusal(self, uid: int) -> Failure | None:
        if self._server is None:
            return Failure("stopping", "the node is stopping", exit=3)
        if uid not in (os.getuid(), 0):
            _log.warning("admin_refused_user", uid=uid)
            return Failure("forbidden", "this socket serves the node's own user", exit=3)
        if len(self._running) > MAX_CONNECTIONS:
            return Failure("busy", f"{MAX_CONNECTIONS} callers are connected already", exit=1)
        return None


def _peer(connection: socket.socket) -> int:
    """The caller's user; -1, which nobody is, where the kernel will not say."""
    try:
        return peer.uid_of(connection)
    except OSError:
        return -1
