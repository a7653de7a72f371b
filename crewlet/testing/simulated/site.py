"""The twin as the broker of a simulated fleet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Final

from actors.delivery import Ack, BatchOptions, Delivery, Letter, Mailbox, Outcome, Partition
from actors.fleet import FleetSpec, Opening
from actors.machines.budget import Backoff
from actors.node import NodeSpec
from actors.ports import Broker, Consumed, NoMailbox, Unavailable
from actors.runtime import SeatRuntime
from actors.seat import SeatSpec
from actors.simulation.checkers import Audit, Retained
from actors.simulation.fleet import Fleet
from actors.simulation.host import Host
from actors.simulation.links import LinkedBroker
from actors.simulation.site import Posting
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_client import MemoryClient
from crewlet.broker.memory_mailbox import MemoryMailbox
from crewlet.broker.memory_store import MemoryStore
from crewlet.coordination.leases import BucketLeases
from crewlet.coordination.store import LEASES, LEDGER, Bucket, Entry
from crewlet.errors import StoreUnavailable
from crewlet.inbound.ledger import Ledger
from crewlet.testing.simulated.store import LinkedStore, StoreOffice
from crewlet.testing.simulated.turn import LeanTurn, Temper, read, write

HURRIED: Final = Backoff(0.05, 0.8)
"""25 deliveries fit a run: the shape of the contract's backoff, sixteen times as fast or more."""

IN_HAND_S: Final = 60.0
"""What comes back by itself later than this is held by somebody; earlier, it waits for a retry."""

SNAPSHOT: Final = (LEASES, LEDGER)


class TwinOffice:
    """Of one process: its client at the twin, and its share of the store."""

    def __init__(self, host: Host, client: MemoryClient, store: StoreOffice) -> None:
        self._host = host
        self._process = host.process
        self._client = client
        self.store = store
        self.linked: LinkedBroker | None = None

    @property
    def broker(self) -> Broker:
        return self._client

    def unheard(self, mailbox: Mailbox, positions: Sequence[int]) -> None:
        self._client.unheard(mailbox, positions)

    def gone(self) -> None:
        self._client.crash()

    def mended(self, since: float) -> None:
        self.store.mended()
        if self.linked is not None and self._process is not None:
            self.linked.line_broke()
            self._process.bring(self.linked.line_mended, since)

    def resync(self) -> None:
        self.store.mended()


class TwinSite:
    """`actors.simulation.site.Site` over a MemoryBroker, with the lean turn."""

    def __init__(self, fleet: Fleet, seats: Sequence[str] = ()) -> None:
        self.fleet = fleet
        self.twin = MemoryBroker()
        self.seats: Sequence[str] = seats or [f"s{n}" for n in range(fleet.plan.knobs.seats)]
        self.temper = Temper(fleet.plan.knobs, fleet.plan.seed)
        self._inboxes: Mapping[Mailbox, str] = {topics.inbox_of(seat): seat for seat in self.seats}
        self._old: Mapping[str, dict[str, Entry]] | None = None
        self._seals = fleet.chance.random() < 0.5
        self._outside = self.twin.client("outside")

    def seat_of(self, mailbox: Mailbox) -> str:
        return self._inboxes.get(mailbox, "")

    def size_of(self, mailbox: Mailbox) -> int:
        box = self.twin.find(mailbox)
        return 0 if box is None else len(box._held) + len(box._fresh)

    # -- before ---------------------------------------------------------------------------

    async def prepare(self) -> None:
        await self._outside.start()
        for seat in self.seats:
            self.ensure(seat)

    def ensure(self, seat: str) -> None:
        made = [
            self.twin.ensure(box(seat))
            for box in (topics.inbox_of, topics.control_of, topics.reflect_of)
        ]
        code = "" if all(made) else "again"
        holds = self.size_of(topics.inbox_of(seat))
        self.fleet.history.add("ensure", seat=seat, pos=holds, code=code)

    def delete(self, seat: str) -> bool:
        holds = self.size_of(topics.inbox_of(seat))
        there = self.twin.delete(topics.inbox_of(seat))
        if there:
            self.fleet.history.add("delete", seat=seat, pos=holds)
        return there

    def join(self, host: Host) -> TwinOffice:
        client = self.twin.client(host.id)
        real = client.store
        assert isinstance(real, MemoryStore)
        store = StoreOffice(host, real, self._peek, self._present, self.fleet.history)
        store.old = lambda: self._old
        self.fleet.world.create_task(_started(client))
        return TwinOffice(host, client, store)

    def _peek(self, bucket: Bucket, key: str) -> Entry | None:
        return self.twin.shelves.of(bucket).live(key)

    def _present(self, bucket: Bucket) -> Sequence[Entry]:
        shelf = self.twin.shelves.of(bucket)
        return [*shelf.begins_with(""), *shelf._removed.values()]

    # -- in a process ---------------------------------------------------------------------

    async def program(self, host: Host) -> None:
        assert isinstance(host.office, TwinOffice)
        office, history = host.office, self.fleet.history
        office.linked = host.broker = LinkedBroker(
            host.wire,
            office.broker,
            history,
            self.seat_of,
            self.size_of,
            office.unheard,
            host.point,
        )
        store = LinkedStore(host, office.store)
        spec = FleetSpec(
            store=BucketLeases(store),
            node=host.name,
            owner=host.id,
            seats=lambda: [Opening(seat) for seat in self.seats],
            prepare=partial(self.prepare_seat, host, store),
            seal=host.name if self._seals else "",
            timing=self.fleet.timing,
        )
        process = host.process
        assert process is not None
        host.runtime = SeatRuntime(
            NodeSpec(host.broker, fleet=spec),
            clock=host.clock,
            seed=process.random.getrandbits(32),
            fallen=partial(self._fallen, host),
        )
        await host.runtime.start()

    def _fallen(self, host: Host, reason: str) -> None:
        self.fleet.fail("code", f"the actors of {host.id} came down: {reason}"[:500])

    async def prepare_seat(self, host: Host, store: LinkedStore, seat: str) -> SeatSpec:
        """The seat as a node would make it."""
        turn = LeanTurn(host, seat, Ledger(store), store, self.temper, self.seat_of)
        return SeatSpec(
            handle=seat,
            inbox=Consumed(topics.inbox_of(seat), read, turn.run, self._options, HURRIED),
            control=Consumed(topics.control_of(seat), plain, obeying(host, seat)),
            reflect=Consumed(topics.reflect_of(seat), plain, ack),
        )

    def body(self, posting: Posting) -> bytes:
        """The bytes of a message of the workload."""
        return write(posting)

    def _options(self) -> BatchOptions:
        knobs = self.fleet.plan.knobs
        return BatchOptions(knobs.max_batch, 0.0 if self.temper.calm else knobs.linger_s)

    # -- the workload ---------------------------------------------------------------------

    async def publish(self, posting: Posting) -> tuple[int, bool]:
        topic = topics.inbox(posting.seat)
        receipt = await self._outside.publish(topic, self.body(posting), message_id=posting.msg)
        return receipt.position, receipt.duplicate

    async def command(self, seat: str, msg: str) -> None:
        await self._outside.publish(topics.control(seat), b"", message_id=msg)
        self.fleet.history.add("command", seat=seat, msg=msg)

    async def publish_nowhere(self, msg: str) -> bool:
        """A broker that does not answer has accepted nothing either."""
        try:
            await self._outside.publish(topics.inbox("nobody"), b"", message_id=msg)
        except (NoMailbox, Unavailable):
            return True
        return False

    def left(self, seat: str) -> Sequence[int]:
        """What is stranded is judged at the end."""
        box = self._box(seat)
        stuck = {position for position, held in box._held.items() if held.stuck}
        return sorted(box.positions - stuck)

    def patience_s(self) -> float:
        return 0.0

    def calm(self) -> None:
        self.temper.calm = True

    # -- faults ---------------------------------------------------------------------------

    def down(self, *, down: bool) -> None:
        self.twin.down = down

    def restart(self) -> None:
        self.twin.restart()

    def old_leader(self, *, on: bool) -> None:
        if on:
            shelves = self.twin.shelves
            self._old = {
                bucket.name: {entry.key: entry for entry in shelves.of(bucket).begins_with("")}
                for bucket in SNAPSHOT
            }
        else:
            self._old = None

    def redeliver(self, seat: str, chance: Random) -> bool:
        box = self._box(seat)
        out = sorted(self._in_hand(box))
        if not out:
            return False
        box.hand_back(chance.choice(out))
        return True

    def wipe(self) -> None:
        shelf = self.twin.shelves.of(LEASES)
        for entry in shelf.begins_with(""):
            shelf.remove(entry.key)

    # -- looks ----------------------------------------------------------------------------

    def _box(self, seat: str) -> MemoryMailbox:
        return self.twin.mailbox(topics.inbox_of(seat))

    def _in_hand(self, box: MemoryMailbox) -> list[int]:
        later = self.fleet.world.now + IN_HAND_S
        return [
            position
            for position, held in box._held.items()
            if not held.queued and held.due is not None and held.due > later
        ]

    def out(self) -> Iterable[tuple[str, int]]:
        for seat in self.seats:
            box = self.twin.find(topics.inbox_of(seat))
            if box is not None and box._held:
                for position in self._in_hand(box):
                    yield seat, position

    def audit(self) -> Audit:
        left: list[Retained] = []
        for seat in self.seats:
            box = self._box(seat)
            left += [Retained(seat, mail.position, 0) for mail in box._fresh]
            left += [
                Retained(seat, position, held.count, held.stuck)
                for position, held in box._held.items()
            ]
        letters = ((self.seat_of(one.mailbox), one.message_id) for one in self.twin.letters())
        return Audit(tuple(left), letters=frozenset(letters))


async def _started(client: MemoryClient) -> None:
    """It connects as soon as the broker answers."""
    while True:
        try:
            await client.start()
        except (Unavailable, StoreUnavailable):
            await asyncio.sleep(0.2)
        else:
            return


def plain(delivery: Delivery) -> Letter:
    """Of a mailbox whose mail says nothing here."""
    return Letter(delivery, delivery.message_id, delivery.message_id, None, None)


def obeying(host: Host, seat: str) -> Callable[[Partition], Awaitable[Outcome]]:
    """What a seat does with its control mail in the process that runs now."""
    note = host.noter()

    async def obeyed(partition: Partition) -> Outcome:
        for letter in partition.letters:
            note("obeyed", seat=seat, msg=letter.id)
        return Ack()

    return obeyed


async def ack(partition: Partition) -> Outcome:
    """Done, whatever it was."""
    return Ack()
