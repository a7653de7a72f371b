"""Several nodes' runtimes over one twin, in virtual time, sharing seats through one lease table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from actors.delivery import Ack, BatchOptions, Delivery, Letter, Outcome, Partition
from actors.fleet import FleetSpec, Opening
from actors.machines.timing import Timing
from actors.node import NodeSpec
from actors.ports import Consumed, Unavailable
from actors.runtime import SeatRuntime
from actors.seat import SeatSpec
from actors.system import LoopClock
from actors.tenure import NODE, Fenced, Heard, Lease, Lost
from crewlet import topics
from crewlet.broker.memory import MemoryBroker

TIMING: Final = Timing()


class LeaseTable:
    """The rows as a leader would have them, with what was granted and when."""

    def __init__(self) -> None:
        self.rows: dict[str, Lease] = {}
        self.revision = 0
        self.grants: list[tuple[float, Lease]] = []
        self._heard: list[Heard] = []

    def write(self, lease: Lease) -> Lease:
        last = self.rows.get(lease.resource)
        if (last.revision if last else 0) != lease.revision:
            raise Lost(f"{lease.resource} is at another revision")
        self.revision += 1
        written = Lease(**{**_fields(lease), "revision": self.revision})
        self.rows[lease.resource] = written
        now = asyncio.get_running_loop().time()
        if not lease.released and (last is None or last.epoch != lease.epoch):
            self.grants.append((now, written))
        for heard in list(self._heard):
            heard(written)
        return written

    def wipe(self) -> None:
        """Somebody deletes the bucket: what is written next counts from one again."""
        rows, self.rows, self.revision = self.rows, {}, 0
        for lease in rows.values():
            for heard in list(self._heard):
                heard(
                    Lease(
                        resource=lease.resource,
                        owner="",
                        node=lease.node if lease.resource.startswith(NODE) else "",
                        epoch=0,
                        session=0,
                        revision=lease.revision,
                    )
                )

    def listen(self, heard: Heard) -> Callable[[], None]:
        for lease in sorted(self.rows.values(), key=lambda lease: lease.revision):
            heard(lease)
        self._heard.append(heard)
        return lambda: self._heard.remove(heard)


def _fields(lease: Lease) -> dict[str, Any]:
    return {name: getattr(lease, name) for name in Lease.__struct_fields__}


class Door:
    """One node's way to the table: it can be shut, or swallow answers."""

    def __init__(self, table: LeaseTable) -> None:
        self._table = table
        self.shut = False
        self.mute = False
        self.latency_s = 0.001

    async def read(self, resource: str) -> Lease | None:
        await self._through()
        return self._table.rows.get(resource)

    async def list(self) -> Sequence[Lease]:
        await self._through()
        rows = self._table.rows.values()
        return sorted(rows, key=lambda lease: lease.resource.startswith(NODE))

    async def write(self, lease: Lease) -> Lease:
        await self._through()
        written = self._table.write(lease)
        if self.mute:
            await asyncio.sleep(1.0)
            raise Unavailable("no answer came")
        return written

    async def watch(self, heard: Heard) -> Listening:
        await self._through()

        def passed(lease: Lease) -> None:
            if not self.shut:
                heard(lease)

        return Listening(self._table.listen(passed))

    async def _through(self) -> None:
        await asyncio.sleep(self.latency_s)
        if self.shut:
            await asyncio.sleep(1.0)
            raise Unavailable("the door is shut")


class Listening:
    def __init__(self, end: Callable[[], None]) -> None:
        self._end: Callable[[], None] | None = end

    async def close(self) -> None:
        if self._end is not None:
            self._end()
            self._end = None


class Fleet:
    """Seats `s0`... worked by `run(node, partition)`."""

    def __init__(
        self,
        seats: int,
        run: Callable[[str, Partition], Coroutine[Any, Any, Outcome]] | None = None,
        demands: dict[str, Any] | None = None,
    ) -> None:
        self.broker = MemoryBroker()
        self.table = LeaseTable()
        self.handles = [f"s{n}" for n in range(seats)]
        self.openings: list[Opening] | None = [
            Opening(handle, *([demands[handle]] if demands and handle in demands else []))
            for handle in self.handles
        ]
        self.run = run or _at_once
        self.doors: dict[str, Door] = {}
        self.runtimes: dict[str, SeatRuntime] = {}
        self.clients: dict[str, Any] = {}
        self.told: list[tuple[str, str, Any]] = []
        self.turns: list[tuple[float, str, str, str]] = []
        self.completed: dict[str, str] = {}
        self.unpreparable: set[tuple[str, str]] = set()

    async def ready(self) -> None:
        client = self.broker.client("setup")
        await client.start()
        for handle in self.handles:
            for box in _boxes(handle):
                await client.ensure(box)
        self.setup = client

    async def join(self, node: str, **given: Any) -> SeatRuntime:
        client = self.broker.client(node)
        await client.start()
        door = self.doors[node] = Door(self.table)
        number = len(self.table.grants)

        async def prepare(handle: str) -> SeatSpec:
            if (node, handle) in self.unpreparable:
                raise Unavailable(f"{node} cannot work {handle}")
            return self._seat(node, handle)

        def tell(event: str, about: Any) -> None:
            self.told.append((node, event, about))

        spec = FleetSpec(
            store=door,
            node=node,
            owner=f"{node}:{number}",
            seats=lambda: self.openings,
            prepare=prepare,
            tell=tell,
            **{"timing": TIMING, **given},
        )
        runtime = SeatRuntime(
            NodeSpec(broker=client, fleet=spec), clock=LoopClock(asyncio.get_running_loop())
        )
        self.clients[node], self.runtimes[node] = client, runtime
        await runtime.start()
        return runtime

    async def crash(self, node: str) -> None:
        """Its process is gone: nothing is told to anybody."""
        self.doors[node].shut = True
        await self.clients[node].stop()
        await self.runtimes.pop(node).stop()

    async def stop(self) -> None:
        for runtime in self.runtimes.values():
            await runtime.stop()

    async def send(self, handle: str, text: str) -> None:
        body = text.encode()
        await self.setup.publish(topics.inbox(handle), body, message_id=text)

    def held(self) -> dict[str, list[str]]:
        """The seats of each node by the rows."""
        nodes: dict[str, list[str]] = {}
        for lease in self.table.rows.values():
            if lease.resource.startswith("seat:") and not lease.released:
                session = self.table.rows[NODE + lease.node]
                if session.epoch == lease.session and not session.released:
                    nodes.setdefault(lease.node, []).append(lease.resource.removeprefix("seat:"))
        return {node: sorted(seats) for node, seats in sorted(nodes.items())}

    def _seat(self, node: str, handle: str) -> SeatSpec:
        async def run(partition: Partition) -> Outcome:
            assert partition.fence is not None
            now = asyncio.get_running_loop().time()
            self.turns.append((now, node, handle, partition.key))
            outcome = await self.run(node, partition)
            if isinstance(outcome, Ack):
                row = self.table.rows["seat:" + handle]
                if row.revision != partition.fence.revision:
                    raise Fenced(f"{handle} is at another revision")
                for letter in partition.letters:
                    assert letter.id not in self.completed
                    self.completed[letter.id] = node
            return outcome

        inbox, control, reflect = _boxes(handle)
        one = BatchOptions(max_batch=1)
        return SeatSpec(
            handle=handle,
            inbox=Consumed(inbox, _read, run, lambda: one),
            control=Consumed(control, _read, _ack),
            reflect=Consumed(reflect, _read, _ack),
        )


def _boxes(handle: str) -> tuple[Any, Any, Any]:
    return topics.inbox_of(handle), topics.control_of(handle), topics.reflect_of(handle)


def _read(delivery: Delivery) -> Letter:
    text = delivery.body.decode()
    return Letter(delivery, text, text, None, text)


async def _at_once(node: str, partition: Partition) -> Outcome:
    return Ack()


async def _ack(partition: Partition) -> Outcome:
    return Ack()
