"""A cable between clients and a server that can be cut: the outage of the queue's suite."""

from __future__ import annotations

import asyncio
import contextlib


class Cable:
    """Forwards TCP from a port of its own to the server's. `cut` drops every connection and
    takes no new one until `mend`: what a client sees is a server that is gone."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def mend(self) -> None:
        """Take connections: the first time at a port that is free, then always there."""
        if self._server is None:
            self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        for ends in ((reader, far_writer), (far_reader, writer)):
            self._writers.add(ends[1])
            task = asyncio.create_task(self._pump(*ends))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()
