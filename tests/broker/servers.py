"""Servers as an operator might run them, and a wire that can be cut between one and a client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from crewlet.broker import server_files
from crewlet.broker.dial import Address
from tests.broker.real import until


@contextlib.asynccontextmanager
async def plain_server(folder: Path, config: str) -> AsyncIterator[Address]:
    """A nats-server with this configuration, on a free port, without credentials."""
    (folder / server_files.RUN).mkdir()
    path = folder / "plain.conf"
    path.write_text(f'listen: "127.0.0.1:-1"\nports_file_dir: "{server_files.RUN}"\n{config}\n')
    child = await asyncio.create_subprocess_exec(
        server_files.find_program(),
        *("-c", path),
        cwd=folder,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(lambda: server_files.read_port(folder, child.pid))
        yield Address((f"nats://127.0.0.1:{server_files.read_port(folder, child.pid)}",))
    finally:
        child.kill()
        await child.wait()


class Proxy:
    """Between a client and a server on the loopback; the test decides what passes."""

    def __init__(self, target: str) -> None:
        self._port = int(target.rpartition(":")[2])
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self.connections = 0

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Break every connection, as a network does."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def say(self, data: bytes) -> None:
        """Put bytes of our own into the stream to the clients."""
        for writer in self._writers[::2]:
            writer.write(data)

    def hold(self) -> None:
        """Nothing passes, nothing breaks."""
        self._open.clear()

    def let_go(self) -> None:
        self._open.set()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.let_go()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, back]
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._copy(source, sink))
            self._tasks.add(task)

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                await self._open.wait()
                sink.write(data)
                await sink.drain()
        sink.transport.abort()
