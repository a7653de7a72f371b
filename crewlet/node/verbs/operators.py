"""The faces of a node for those who operate it: its socket, and its subject at the broker."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from actors.admin import Endpoint
from crewlet.node.verbs.desk import Desk, explained
from crewlet.node.verbs.table import operations_of
from crewlet.node.view import NodeView


class Operators:
    """From `start` to `stop`. Without a data folder there is no socket."""

    def __init__(self, node: NodeView, data: Path | None) -> None:
        self._desk = Desk(node, operations_of(node))
        self._data = data
        self._closers = AsyncExitStack()

    async def start(self) -> None:
        """The socket last: whoever finds it is answered, also on behalf of other nodes."""
        await self._desk.start()
        self._closers.push_async_callback(self._desk.stop)
        if self._data is not None:
            endpoint = Endpoint(self._data, self._desk.verbs(), explain=explained)
            await endpoint.start()
            self._closers.push_async_callback(endpoint.stop)

    async def stop(self) -> None:
        await self._closers.aclose()
