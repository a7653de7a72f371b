"""A whole node on the twin behind a real socket: what the shell's lines are run against."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import structlog

from crewlet.broker.memory import MemoryBroker
from crewlet.company import NodeIdentity, NodeSettings, parse_company
from crewlet.node import Node
from crewlet.turn import Turn

T = TypeVar("T")

FILE = Path(__file__).parent / "octo.yaml"


class Running:
    """A node on a loop in a thread; `go` lets its turns end."""

    def __init__(self, data: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.go = asyncio.Event()
        self.go.set()
        self.node = Node(
            parse_company(FILE.read_text()),
            turn=self._turn,
            settings=NodeSettings(node=NodeIdentity(id="n1")),
            broker=MemoryBroker().client("n1"),
            data=data,
            web=False,
        )
        self.run(self.node.start())
        self.run(self._owned())

    async def _turn(self, _: Turn) -> str:
        await self.go.wait()
        return "done"

    async def _owned(self) -> None:
        async with asyncio.timeout(20):
            while not all(map(self.node.fleet.owner_of, ("dev", "ops"))):
                await asyncio.sleep(0.02)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def close(self) -> None:
        self.run(self.node.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()


@contextlib.contextmanager
def operated(data: Path) -> Iterator[Running]:
    # What it logs would come between the lines that a test reads from this very process.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        with contextlib.closing(Running(data)) as running:
            yield running
    finally:
        structlog.reset_defaults()
