"""One node's runtime on the twin, in virtual time, with a consumer that can be made to break."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from thespian.actors import ActorAddress

from actors.box import Fired
from actors.delivery import (
    Ack,
    BatchOptions,
    Delivery,
    Letter,
    Mailbox,
    Outcome,
    Partition,
    Verdict,
)
from actors.messages import NodeDrained
from actors.node import NodeSpec
from actors.ports import Attachment, Consumed
from actors.runtime import SeatRuntime
from actors.system import LoopClock, Snapshot, run_virtual
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_attachment import MemoryAttachment
from crewlet.broker.memory_client import MemoryClient

INBOX: Final = topics.inbox_of("dev")
NAME, BOX = "dev", "mail"

Run = Callable[[Partition], Coroutine[Any, Any, Outcome]]


class WatchedClient(MemoryClient):
    """A client that writes down what it was asked, and is as slow as a test wants it."""

    def __init__(self, broker: MemoryBroker, node_id: str) -> None:
        super().__init__(broker, node_id)
        self.calls: list[str] = []
        self.slow: dict[str, float] = {}

    async def _slowly(self, call: str) -> None:
        self.calls.append(call)
        await asyncio.sleep(self.slow.get(call, 0.0))

    async def attach(self, mailbox: Mailbox, epoch: int) -> MemoryAttachment:
        await self._slowly("attach")
        return await super().attach(mailbox, epoch)

    async def reclaim(self, mailbox: Mailbox) -> int:
        await self._slowly("reclaim")
        return await super().reclaim(mailbox)

    async def settle(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        await self._slowly("settle")
        await super().settle(verdicts)
        self.calls.append("settled")

    async def release(self, attachment: Attachment) -> None:
        await self._slowly("release")
        await super().release(attachment)


class Bench:
    """One runtime with one consumer, attached by hand unless it is the node's router."""

    def __init__(self, broker: MemoryBroker | None = None, node: str = "n1") -> None:
        self.broker = broker or MemoryBroker()
        self.client = WatchedClient(self.broker, node)
        self.options: Callable[[], BatchOptions] = BatchOptions
        self.read: Callable[[Delivery], Letter] = read
        self.seen: list[tuple[str, int | None]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fallen: list[str] = []
        self.runtime: SeatRuntime

    async def begin(self, *, router: bool = False, run: Run | None = None) -> None:
        await self.client.start()
        await self.client.ensure(INBOX)
        routed = self.consumed(run) if router else None
        spec = NodeSpec(self.client, router=routed, reclaim_router=True)
        clock = LoopClock(asyncio.get_running_loop())
        self.runtime = SeatRuntime(spec, clock=clock, fallen=self.fallen.append)

    async def start(self) -> None:
        await self.begin()
        await self.runtime.start()
        await self.runtime.consumer(NAME, BOX)

    def consumed(self, run: Run | None = None) -> Consumed:
        return Consumed(INBOX, lambda d: self.read(d), run or self.run, lambda: self.options())

    async def run(self, partition: Partition) -> Outcome:
        self.seen += [(letter.id, letter.delivery.count) for letter in partition.letters]
        await self.gate.wait()
        return Ack()

    async def attach(self, run: Run | None = None) -> None:
        await self.runtime.attach(NAME, BOX, self.consumed(run))

    async def send(self, *texts: str) -> None:
        for text in texts:
            await self.client.publish(INBOX.topic, text.encode(), message_id=text)

    def crash(self, name: str = NAME) -> None:
        """A bug in the consumer: a handler of its own raises."""
        self.runtime._base.tell(self.runtime._known[name], Fired("no such box", "timer"))

    async def mail(self) -> tuple[int, int]:
        """What waits, and what somebody holds."""
        (state,) = await self.client.list(INBOX.topic)
        return state.waiting, state.in_flight

    async def settled(self) -> bool:
        return await self.mail() == (0, 0)

    async def successor(self) -> list[tuple[str, int | None]]:
        """All that another node's first fetch brings, at once."""
        other = self.broker.client("n2")
        await other.start()
        attachment = await other.attach(INBOX, 2)
        got = await other.fetch(attachment, 100, 0.0)
        return [(delivery.body.decode(), delivery.count) for delivery in got]

    def actor(self, name: str = NAME) -> Snapshot:
        (root,) = (top for top in self.runtime._base.tree() if top.name == "node")
        return next(child for child in root.children if child.name == name)

    def address(self, name: str) -> ActorAddress:
        return ActorAddress(self.actor(name).address)

    async def end(self) -> NodeDrained:
        drained = await self.runtime.drain(5.0)
        await self.runtime.stop()
        await self.client.stop()
        return drained


def read(delivery: Delivery) -> Letter:
    """A conversation for each text, up to a `:`."""
    text = delivery.body.decode()
    return Letter(delivery, text, text.partition(":")[0], None, None)


def play(
    test: Callable[[Bench], Coroutine[Any, Any, None]],
    *,
    started: bool = True,
    ends: bool = True,
    seed: int = 0,
) -> None:
    async def main() -> None:
        bench = Bench()
        if started:
            await bench.start()
        await test(bench)
        if ends:
            drained = await bench.end()
            assert drained.stuck == ()

    run_virtual(main, seed=seed)
