"""The linked broker: a fetch is ended by what was said of it, and by nothing older."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, cast

from actors.delivery import Delivery
from actors.ports import Broker, Unavailable
from actors.simulation.history import History
from actors.simulation.links import LinkedBroker
from actors.simulation.process import Process
from actors.simulation.wire import Line, Wire
from actors.simulation.world import World
from crewlet import topics


class Office:
    """The broker's end: one fetch, which stands until it is given something."""

    def __init__(self) -> None:
        self.standing: asyncio.Future[Sequence[Delivery]] | None = None

    async def attach(self, mailbox: object, epoch: int) -> object:
        return self

    async def fetch(self, real: object, most: int, wait_s: float) -> Sequence[Delivery]:
        self.standing = asyncio.get_running_loop().create_future()
        return await self.standing

    async def outstanding(self, mailbox: object) -> frozenset[int]:
        return frozenset()

    async def recall(self, real: object) -> None:
        raise AssertionError("every recall of this test is lost")


def test_a_recall_that_was_lost_leaves_a_later_fetch_alone():
    """Said twice, since nobody answered: the first ends the fetch, and by the time that the second
    is given up another fetch is on its way."""
    world, line, office = World(1), Line(Random(1)), Office()
    process = Process(world, "n1#1")
    history = History(lambda: world.now)
    wire = Wire(world, process, line)
    linked = LinkedBroker(
        wire,
        cast("Broker", office),
        history,
        seat_of=lambda mailbox: "dev",
        size_of=lambda mailbox: 0,
        unheard=lambda mailbox, positions: None,
    )
    ends: list[Any] = []

    async def recalled(hold: Any) -> None:
        try:
            await linked.recall(hold)
        except Unavailable:
            ends.append("raised")

    async def node() -> None:
        hold = await linked.attach(topics.inbox_of("dev"), 1)
        first = asyncio.ensure_future(linked.fetch(hold, 1, 3600.0))
        await asyncio.sleep(1.0 - world.now)
        line.up = False
        said = [asyncio.ensure_future(recalled(hold))]
        await asyncio.sleep(0.5)
        said.append(asyncio.ensure_future(recalled(hold)))
        ends.append(await first)  # at 4.0, when the first recall is given up; the second is at 4.5
        await asyncio.sleep(0.49)
        line.up, line.slow, office.standing = True, 100.0, None
        second = asyncio.ensure_future(linked.fetch(hold, 1, 3600.0))
        await asyncio.gather(*said)
        await asyncio.sleep(1.0)
        assert office.standing is not None
        office.standing.get_loop().call_soon(office.standing.set_result, [])
        ends.append(await second)

    async def test() -> None:
        process.bring(lambda: process.create_task(node()))
        await asyncio.sleep(20.0)

    world.run(test())
    assert ends == [[], []] and not process.broken
