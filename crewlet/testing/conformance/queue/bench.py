"""What a case works with: queues of several nodes over one broker, and the mailboxes it uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from actors.delivery import BatchOptions, Mailbox
from actors.machines.budget import Backoff
from actors.ports import MailboxState
from actors.system import LoopClock
from crewlet import topics
from crewlet.broker.port import CompanyBroker, DeadLetter
from crewlet.events import Event
from crewlet.queue import EventQueue, Published
from crewlet.testing.conformance.harness import SOON_S, now, pass_time
from crewlet.testing.conformance.queue.harness import QueueHarness
from crewlet.testing.conformance.queue.reader import Reader, event, key_of

HURRY: Final = Backoff(first_s=0.025, longest_s=0.05)
"""Failures of a suite come back soon; one case, in virtual time, keeps the real numbers."""


class Bench:
    """The harness, with queues of its own that are stopped when the case is over."""

    def __init__(self, harness: QueueHarness) -> None:
        self.harness = harness
        self._queues: list[EventQueue] = []

    @property
    def slack_s(self) -> float:
        return self.harness.slack_s

    def name(self) -> str:
        return self.harness.name()

    async def queue(self, *, started: bool = True, backoff: Backoff = HURRY) -> EventQueue:
        """Another node's queue: `node-1`, `node-2` and so on."""
        queue = EventQueue(
            await self.harness.client(started=False),
            node_id=f"node-{len(self._queues) + 1}",
            clock=LoopClock(asyncio.get_running_loop()),
            backoff=backoff,
        )
        self._queues.append(queue)
        if started:
            await queue.start()
        return queue

    async def desk(self, *, ensured: bool = True, backoff: Backoff = HURRY) -> Desk:
        """A mailbox that nobody used before, on a queue of its own."""
        queue = await self.queue(backoff=backoff)
        desk = Desk(self, queue, topics.inbox_of(self.name()))
        if ensured:
            assert await queue.ensure(*desk.pair) is True
        return desk

    async def client(self) -> CompanyBroker:
        """A client below the queue: to see dead letters, and to publish what is no event."""
        return await self.harness.client()

    async def silence(self) -> None:
        """Long enough for what must not come to have come."""
        await pass_time(self.harness.quiet_s)

    async def close(self) -> None:
        for queue in self._queues:
            await queue.stop()


class Desk:
    """One queue's view of one mailbox, with the verbs said for it."""

    def __init__(self, bench: Bench, queue: EventQueue, mailbox: Mailbox) -> None:
        self.bench = bench
        self.queue = queue
        self.mailbox = mailbox
        self.pair = (mailbox.topic, mailbox.group)
        self.topic = mailbox.topic

    async def peer(self) -> Desk:
        """The same mailbox, from another node."""
        return Desk(self.bench, await self.bench.queue(), self.mailbox)

    def sibling(self, group: str) -> Desk:
        """Another group of the same topic, on the same queue."""
        return Desk(self.bench, self.queue, Mailbox(self.topic, f"{self.mailbox.group}-{group}"))

    async def send(self, *names: str, key: str = "", at: float | None = None) -> list[Published]:
        """Publish events of these names; `key` is their conversation and `at` (seconds) their
        timestamp, which counts up by itself otherwise."""
        return [
            await self.queue.publish(self.topic, event(self.topic, name, key=key, at=at))
            for name in names
        ]

    async def subscribe(self, reader: Reader | None = None) -> Reader:
        """An ordinary subscription: each message alone."""
        reader = reader or Reader()
        await self.queue.subscribe(*self.pair, reader)
        return reader

    async def subscribe_batch(
        self,
        reader: Reader | None = None,
        *,
        linger_s: float = 0.0,
        most: int = 20,
        key: Callable[[Event], str] = key_of,
        options: Callable[[], BatchOptions] | None = None,
    ) -> Reader:
        """A batch subscription whose conversations are the events' keys."""
        reader = reader or Reader()
        fixed = BatchOptions(max_batch=most, linger_s=linger_s)
        await self.queue.subscribe_batch(*self.pair, reader, key=key, options=options or _of(fixed))
        return reader

    async def state(self) -> MailboxState | None:
        """What a listing says of this mailbox; None where there is none."""
        found = await self.queue.list(self.topic)
        return next((one for one in found if one.mailbox == self.mailbox), None)

    async def emptied(self) -> None:
        """All mail was settled."""
        await self.settled_to(waiting=0, in_flight=0)

    async def settled_to(self, **wanted: int) -> None:
        """The listing comes to these numbers: what was said is not heard at once."""
        deadline = now() + SOON_S
        while True:
            state = await self.state()
            if state and all(getattr(state, name) == value for name, value in wanted.items()):
                return
            assert now() < deadline, f"{state} never came to {wanted}"
            await asyncio.sleep(0.01)

    async def letters(self) -> Sequence[DeadLetter]:
        """The dead letters of this mailbox, newest first."""
        client = await self.bench.client()
        found = await client.dead_letters(1000)
        return [letter for letter in found if letter.mailbox == self.mailbox]

    async def resume(self) -> None:
        """Undo the rest that a deferral begins, as soon as it has begun."""
        deadline = now() + SOON_S
        while not await self.queue.unquiesce(*self.pair):
            assert now() < deadline, "no deferral began"
            await asyncio.sleep(0.01)

    async def flows(self, reader: Reader, name: str = "control") -> None:
        """The positive control beside a silence: mail reaches this reader."""
        await self.send(name, key=name)
        await reader.until(name)


def _of(options: BatchOptions) -> Callable[[], BatchOptions]:
    return lambda: options
