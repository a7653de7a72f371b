"""What the inbound tests share: a twin on virtual time with queue, ledger and followers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from actors.delivery import Delivery, Letter, Mailbox, Partition
from crewlet import topics
from crewlet.events import Event, Trace, decode, encode
from crewlet.inbound import letters
from crewlet.inbound.followers import Followers
from crewlet.inbound.ledger import Ledger
from crewlet.queue import Publisher
from crewlet.testing import MemoryBroker, run_virtual

T = TypeVar("T")

START = datetime(2026, 3, 1, 10, tzinfo=UTC)


class LoopClock:
    """The loop's own time, as a wall clock too."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())


class Bench:
    """One node on a twin. `down` of the broker takes the store along, `store_down` only it."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.client = self.broker.client("n1")
        self.clock = LoopClock()
        self.queue = Publisher(self.client, node_id="n1", clock=self.clock)
        self.ledger = Ledger(self.client.store)
        self.followers = Followers(self.client.store)

    def store_down(self, down: bool) -> None:
        self.broker.shelves.down = down

    async def ensure(self, *handles: str) -> None:
        for handle in handles:
            await self.client.ensure(topics.inbox_of(handle))
            await self.client.ensure(topics.reflect_of(handle))

    async def mail(self, mailbox: Mailbox) -> list[Event]:
        """What waits in a mailbox; it is held from then on."""
        attachment = await self.client.attach(mailbox, 1)
        found = await self.client.fetch(attachment, 100, 0.0)
        return [decode(delivery.body) for delivery in found]

    async def recorded(self, event_type: str) -> list[Event]:
        """The record of that type so far, oldest first."""
        found = await self.client.recent(topics.event(event_type), 1000)
        return [decode(body) for _, body in found]


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, T]]) -> T:
    async def main() -> T:
        bench = Bench()
        await bench.client.start()
        return await play(bench)

    return run_virtual(main)


def event(id: str, *, key: str = "chat:C1", minute: int = 0, text: str = "hello") -> Event:
    """A task for `dev`, in the conversation `key`."""
    return Event.new(
        "task_assigned",
        id=id,
        at=START + timedelta(minutes=minute),
        trace=Trace.root(),
        payload={"partition_key": key, "conversation_identity": key} if key else {},
        body={"handle": "dev", "text": text, "sender": "boss"},
    )


def letter(event: Event, position: int = 1, count: int | None = 1) -> Letter:
    box = topics.inbox_of("dev")
    return letters.read(Delivery(box, encode(event), count, position, f"{position}/{count}"))


def partition(*events: Event, count: int | None = 1) -> Partition:
    """Letters of one conversation, as a consumer would hand them over."""
    made = tuple(letter(one, position, count) for position, one in enumerate(events, 1))
    return Partition(made[0].key, made)
