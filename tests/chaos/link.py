"""The wire between one node and the servers, which a run may cut, silence one way, or slow down."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Literal

Mode = Literal["open", "cut", "silent", "deaf", "mute", "slow"]
"""`cut`: connections break and none is made. `silent`: they stay and carry nothing. `deaf`: the
node hears nothing of what still arrives from it; `mute`: the other way round. `slow`: 300 ms."""

DELAY_S = 0.3


class Link:
    """A listener for each server; the node is told their addresses and no other."""

    def __init__(self, targets: Sequence[tuple[str, int]]) -> None:
        self._targets = targets
        self._servers: list[asyncio.Server] = []
        self._transports: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self.mode: Mode = "open"
        self.urls: list[str] = []

    async def start(self) -> None:
        for target in self._targets:
            serve = self._serving(target)
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            self._servers.append(server)
            self.urls.append(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    def set(self, mode: Mode) -> None:
        self.mode = mode
        if mode == "cut":
            for writer in list(self._transports):
                writer.transport.abort()
        self._changed.set()
        self._changed = asyncio.Event()

    async def stop(self) -> None:
        self.set("cut")
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _serving(self, target: tuple[str, int]):  # type: ignore[no-untyped-def]
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                if self.mode == "cut":
                    raise OSError("cut")
                there, back = await asyncio.open_connection(*target)
            except OSError:
                writer.transport.abort()
                return
            self._transports |= {writer, back}
            for source, sink, to_server in ((reader, back, True), (there, writer, False)):
                task = asyncio.create_task(self._carry(source, sink, to_server=to_server))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        return serve

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, to_server: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                while self._holds(to_server):
                    await self._changed.wait()
                if self.mode == "slow":
                    await asyncio.sleep(DELAY_S)
                sink.write(data)
                await sink.drain()
        sink.transport.abort()
        self._transports.discard(sink)

    def _holds(self, to_server: bool) -> bool:
        if self.mode == "silent":
            return True
        return self.mode == ("mute" if to_server else "deaf")
