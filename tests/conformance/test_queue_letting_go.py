"""Quiesce, hold, detach, stop at random under load, on a real server: nothing waits for the ack
window afterwards, nothing is lost, nothing that was finished comes again."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from actors.ports import BrokerError, Unavailable
from actors.system import SystemClock
from crewlet import topics
from crewlet.broker import StreamSettings, open_broker
from crewlet.broker.port import CompanyBroker
from crewlet.errors import CrewletError
from crewlet.events import Event, Trace
from crewlet.queue import Batch, EventQueue

SEATS = ("a", "b", "c", "d")
AT_ONCE_S = 20.0
"""Far below the ack window of half an hour: who waits longer waits for that."""


class Load:
    """Four mailboxes that are written to all the time, and one queue that reads them when it
    may."""

    def __init__(self, broker: CompanyBroker, seed: int) -> None:
        self.chance = random.Random(seed)
        self.writer = EventQueue(broker, node_id="writer", clock=SystemClock())
        self.queue = EventQueue(broker, node_id="reader", clock=SystemClock())
        self.sent: list[str] = []
        self.done: Counter[str] = Counter()
        self.writing = True

    async def handle(self, batch: Batch) -> None:
        await asyncio.sleep(self.chance.choice((0.0, 0.0, 0.001, 0.005)))
        self.done.update(event.id for event in batch.events)

    async def attach(self, seat: str) -> None:
        with contextlib.suppress(ValueError, Unavailable):  # attached, or on its way out
            await self.queue.subscribe_batch(
                topics.inbox(seat),
                "readers",
                self.handle,
                key=lambda event: event.value("key", str, ""),
            )

    async def write(self) -> None:
        while self.writing:
            event = Event.new(
                "t",
                at=datetime.now(UTC),
                trace=Trace.root(),
                body={"key": self.chance.choice("xyz")},
            )
            await self.writer.publish(topics.inbox(self.chance.choice(SEATS)), event)
            self.sent.append(event.id)
            await asyncio.sleep(0.001)

    async def act(self) -> None:
        """One verb, on one seat."""
        seat = self.chance.choice(SEATS)
        topic, queue = topics.inbox(seat), self.queue
        match self.chance.randrange(8):
            case 0:
                await queue.quiesce(topic, "readers")
            case 1 | 2:
                await queue.unquiesce(topic, "readers")
            case 3:
                await queue.hold(topic, "readers", "x")
            case 4 | 5:
                await queue.lift(topic, "readers", "x")
            case 6:
                await queue.detach(topic, "readers")
            case 7:
                await self.attach(seat)

    async def settle_down(self) -> None:
        """Lift everything, read everything."""
        self.writing = False
        for seat in SEATS:
            topic = topics.inbox(seat)
            await self.queue.detach(topic, "readers")
            await self.attach(seat)
            await self.queue.lift(topic, "readers", "x")
            await self.queue.unquiesce(topic, "readers")
        async with asyncio.timeout(AT_ONCE_S):
            while set(self.done) != set(self.sent) or not await self.empty():
                await asyncio.sleep(0.02)

    async def empty(self) -> bool:
        states = await self.writer.list(topics.AGENT)
        return all(state.waiting == state.in_flight == 0 for state in states)


async def play(folder: Path, seed: int, operations: int) -> None:
    settings = StreamSettings(sync="interval")
    broker = await open_broker(settings, node_id="n", data_dir=folder)
    load = Load(broker, seed)
    try:
        await load.writer.start()
        await load.queue.start()
        for seat in SEATS:
            await load.writer.ensure(topics.inbox(seat), "readers")
        writing = asyncio.create_task(load.write())
        for _ in range(operations):
            try:
                await load.act()
            except (BrokerError, CrewletError) as error:
                raise AssertionError(f"a verb failed on a healthy broker: {error!r}") from error
            await asyncio.sleep(load.chance.choice((0.0, 0.001, 0.004)))
        await load.settle_down()
        await writing
        twice = {id: n for id, n in load.done.items() if n > 1}
        assert not twice, "what a handler finished came again"
    finally:
        load.writing = False
        await broker.stop()


@pytest.mark.certifies(35, 65, 66, 67, 68)
@pytest.mark.parametrize("seed", [1])
def test_a_thousand_verbs_under_load_leave_nothing_behind(tmp_path: Path, seed: int) -> None:
    asyncio.run(play(tmp_path, seed, 1000))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_ten_thousand_verbs(tmp_path: Path, seed: int) -> None:
    asyncio.run(play(tmp_path, seed, 1000))
