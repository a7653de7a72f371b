"""Runs of several nodes on one twin, whose brakes are written down; no actors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

from actors.delivery import Ack, Delivery, Done, Mailbox, Partition
from crewlet import topics
from crewlet.broker.memory_client import MemoryClient
from crewlet.company import Seat
from crewlet.events import Event, Trace, decode, encode
from crewlet.inbound.ledger import Ledger
from crewlet.inbound.letters import read, read_alone
from crewlet.inbound.work import AtWork, Work
from crewlet.queue import Publisher
from crewlet.runs.row import Origin, Run
from crewlet.runs.runs import Runs
from crewlet.testing import MemoryBroker, run_virtual
from crewlet.turn import Turn

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
SEAT = Seat(handle="dev", name="Developer", agent_id="a-1")
CHAT = "chat:C1"


class LoopClock:
    """The loop's own time, as a wall clock too."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())


class Bench:
    """One node."""

    def __init__(self, broker: MemoryBroker, name: str) -> None:
        self.broker = broker
        self.client: MemoryClient = broker.client(name)
        self.clock = LoopClock()
        self.queue = Publisher(self.client, node_id=name, clock=self.clock)
        self.ledger = Ledger(self.client.store)
        self.holds: set[tuple[str, str]] = set()
        self.runs = Runs(self.client.store, self.queue, self.ledger, self, self.clock, name)

    async def hold(self, handle: str, name: str) -> bool:
        self.holds.add((handle, name))
        return True

    async def lift(self, handle: str, name: str) -> bool:
        self.holds.discard((handle, name))
        return True

    @property
    def held(self) -> bool:
        return ("dev", "run") in self.holds

    async def open(self, run_id: str = "r1", *, turn: str = "t1", epoch: int = 1) -> Any:
        origin = Origin(
            turn_id=turn,
            node=self.client.node_id,
            epoch=epoch,
            triggers=("e1",),
            partition_key=CHAT,
            conversation_identity=CHAT,
        )
        return await self.runs.open("dev", run_id, origin)

    async def told(self) -> None:
        """Work what lies in dev's control mailbox, in order."""
        for delivery in await self.mail(topics.control_of("dev")):
            outcome = await self.runs.control(Partition("k", (read_alone(delivery),)))
            assert outcome == Ack(), outcome
            await self.client.settle([(delivery, Done())])

    async def mail(self, mailbox: Mailbox) -> list[Delivery]:
        attachment = await self.client.attach(mailbox, 1)
        found = await self.client.fetch(attachment, 100, 0.0)
        await self.client.release(attachment)
        return list(found)

    async def inbox(self) -> list[Event]:
        return [decode(one.body) for one in await self.mail(topics.inbox_of("dev"))]

    async def recorded(self, event_type: str) -> list[Event]:
        found = await self.client.recent(topics.event(event_type), 1000)
        return [decode(body) for _, body in found]

    async def row(self, run_id: str = "r1") -> Run:
        return await self.runs.get("dev", run_id)


def on_benches(play: Callable[..., Coroutine[Any, Any, None]], *names: str) -> None:
    """`play(bench, ...)` with a node of each name; dev has its mailboxes."""

    async def main() -> None:
        broker = MemoryBroker()
        benches = [Bench(broker, name) for name in names or ("n1",)]
        for bench in benches:
            await bench.client.start()
        for box in (topics.inbox_of, topics.control_of):
            await benches[0].client.ensure(box("dev"))
        await asyncio.sleep(1)
        await play(*benches)

    run_virtual(main)


def message(id: str, at: datetime, text: str = "main, please", *, key: str = CHAT) -> Event:
    return Event.new(
        "task_assigned",
        id=id,
        at=at,
        trace=Trace.root(),
        payload={"partition_key": key, "conversation_identity": key},
        body={"handle": "dev", "text": text, "sender": "ann"},
    )


def work_of(*events: Event, count: int = 1) -> Work:
    """As a consumer hands them over; each is on its `count`-th delivery."""
    box = topics.inbox_of("dev")
    letters = tuple(
        read(Delivery(box, encode(event), count, position, f"{position}/{count}"))
        for position, event in enumerate(events, 1)
    )
    return Work(Partition(letters[0].key, letters), AtWork(SEAT, _nobody, 60.0))


async def _nobody(turn: Turn) -> Ack:
    raise AssertionError("no turn is run here")
