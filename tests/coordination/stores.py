"""One test over both stores: the twin in virtual time, JetStream on a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from crewlet.broker.memory import MemoryBroker
from crewlet.coordination.store import Store
from crewlet.testing import run_virtual
from tests.broker.real import serving

Play = Callable[[Store, Store], Awaitable[None]]
"""A test's body; it is given the stores of two nodes."""

both = pytest.mark.parametrize("kind", ["twin", "jetstream"])


def run(kind: str, folder: Path, play: Play) -> None:
    if kind == "twin":
        for seed in range(3):
            run_virtual(lambda: _on_the_twin(play), seed=seed)
    else:
        asyncio.run(asyncio.wait_for(_on_jetstream(folder, play), 60))


async def _on_the_twin(play: Play) -> None:
    broker = MemoryBroker()
    clients = [broker.client("n1"), broker.client("n2")]
    for client in clients:
        await client.start()
    await play(clients[0].store, clients[1].store)


async def _on_jetstream(folder: Path, play: Play) -> None:
    async with serving(folder, memory=True) as real:
        clients = [real.client("n1"), real.client("n2")]
        await asyncio.gather(*(client.start() for client in clients))
        try:
            await play(clients[0].store, clients[1].store)
        finally:
            await asyncio.gather(*(client.stop() for client in clients))
