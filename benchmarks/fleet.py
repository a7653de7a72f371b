"""What does a fleet cost, and how long is a seat without a node? How does that grow?

Nodes are processes of their own on a nats-server that none of them owns (`type: nats`; files,
synced at intervals); handlers do nothing. One node takes every seat, from nothing and again; it
idles for whole minutes; a second one joins and the first hands all over; two more join and the
one with all the seats is killed.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import nats
import psutil

from actors.node import ESTABLISH_LIMIT
from benchmarks.member import Member, Order, until
from benchmarks.report import Report
from benchmarks.rows import Rows, bare_writes, percentile
from crewlet.broker.api import Api
from crewlet.broker.dial import Address
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.wire import Wire

MOVED_S: Final = 300.0
"""Nothing that is waited for takes this long."""


@dataclass(frozen=True)
class Size:
    """`settle_s`: until a node that took its seats over has looked for what was left behind.
    `join_s`: how long a node that joined is given seats, by the brake."""

    settle_s: float
    span_s: float
    spans: int
    join_s: float
    ttl_s: float


FULL: Final = Size(settle_s=80.0, span_s=60.0, spans=2, join_s=30.0, ttl_s=20.0)
QUICK: Final = Size(settle_s=0.5, span_s=1.0, spans=1, join_s=2.0, ttl_s=4.0)


def run(*, quick: bool) -> Report:
    report = Report("fleet")
    for seats in (20,) if quick else (100, 1000, 3000):
        asyncio.run(measure(report, seats, QUICK if quick else FULL))
    return report


async def measure(report: Report, seats: int, size: Size) -> None:
    async with _place(report, seats, size) as fleet:
        await fleet.boots()
        await fleet.idles()
        await fleet.gains_a_node()
        await fleet.hands_over()
        await fleet.loses_a_node()


class Fleet:
    """The nodes on one server, and what is measured of them, in the order of `measure`."""

    def __init__(
        self,
        report: Report,
        members: Sequence[Member],
        server: psutil.Process,
        rows: Rows,
        bare_a_second: float,
        seats: int,
        size: Size,
    ) -> None:
        self._report = report
        self._first, self._second, *self._others = members
        self._members = members
        self._server = server
        self._rows = rows
        self._bare = bare_a_second
        self._seats = seats
        self._size = size

    async def boots(self) -> None:
        self._add("bare lease rows written", "1/s", self._bare, 1.0)
        for what in ("first boot", "second boot"):
            self._rows.forget()
            await self._first.start()
            there = self._first.established
            await until(lambda: len(there) == self._seats, MOVED_S)  # noqa: B023
            took_s = max(there.values()) - min(self._rows.claimed.values())
            self._add(what, "s", self._first.booted_s)
            self._cost(what, _spent(self._first.process), self._seats)
            self._rate(f"{what}, seats taken", took_s, writes=1)
            if what == "first boot":
                began = time.monotonic()
                await self._first.stop()
                self._add("stop", "s", time.monotonic() - began)

    async def idles(self) -> None:
        node, size = self._first.process, self._size
        await asyncio.sleep(size.settle_s)
        added = node.memory_info().rss - self._first.resident_before
        worst, server_worst, messages, octets = 0.0, 0.0, self._rows.messages, self._rows.octets
        for _ in range(size.spans):
            before, server_before = _spent(node), _spent(self._server)
            await asyncio.sleep(size.span_s)
            worst = max(worst, _spent(node) - before)
            server_worst = max(server_worst, _spent(self._server) - server_before)
        minutes = size.span_s * size.spans / 60.0
        span = f"worst of {size.spans} x {size.span_s:.0f} s"
        self._add(f"idle, client cpu, {span}", "%", 100 * worst / size.span_s)
        self._add(f"idle, server cpu, {span}", "%", 100 * server_worst / size.span_s)
        self._add("client memory", "KiB/seat", added / 1024 / self._seats)
        self._add("server memory", "MiB", self._server.memory_info().rss / 2**20)
        self._add("heartbeats", "1/min", (self._rows.messages - messages) / minutes)
        self._add("heartbeats", "B/min", (self._rows.octets - octets) / minutes)

    async def gains_a_node(self) -> None:
        self._rows.forget()
        await self._second.start()
        await asyncio.sleep(self._size.join_s)
        moved = self._second.established
        self._add("a node joins, moved to it", "1/min", len(moved) * 60.0 / self._size.join_s)
        self._gaps("a node joins", self._rows.gaps(moved))

    async def hands_over(self) -> None:
        self._rows.forget()
        already = set(self._second.established)
        began = time.monotonic()
        self._first.ask_to_stop()
        there = self._second.established
        await until(lambda: len(there) == self._seats, MOVED_S)
        await self._first.ended()
        moved = {handle: at for handle, at in there.items() if handle not in already}
        self._rate("handed over", max(moved.values()) - began, writes=2, seats=len(moved))
        self._gaps("handed over", self._rows.gaps(moved))

    async def loses_a_node(self) -> None:
        """The one with nearly all the seats: two others have just come."""
        for member in self._others:
            await member.start()
        before = [_spent(member.process) for member in self._others]
        died = set(self._second.established)
        at = self._second.kill()

        def times() -> list[float]:
            found = {h: t for member in self._others for h, t in member.established.items()}
            return [found[handle] for handle in died if handle in found]

        await until(lambda: len(times()) == len(died), MOVED_S)
        self._add("killed, its first seat works", "s", min(times()) - at)
        self._add("killed, its last seat works", "s", max(times()) - at)
        took_s = max(times()) - min(times())
        self._rate("killed, seats taken", took_s, writes=1, seats=len(died))
        spent = [_spent(member.process) for member in self._others]
        self._cost("killed, survivors", sum(spent) - sum(before), len(died))

    def _rate(self, metric: str, took_s: float, writes: int, seats: int = 0) -> None:
        """Seats a second, compared with a loop that only writes as many rows for each."""
        rate = (seats or self._seats) / max(took_s, 0.001)
        self._add(metric, "seats/s", rate, rate * writes / self._bare)

    def _cost(self, what: str, spent_s: float, seats: int) -> None:
        """What other work of the machine changes least."""
        self._add(f"{what}, client cpu", "ms/seat", 1000 * spent_s / seats)

    def _gaps(self, what: str, gaps: Sequence[float]) -> None:
        for per_cent in (50, 99):
            worth_ms = 1000 * percentile(gaps, per_cent)
            self._add(f"{what}, without a node, p{per_cent}", "ms", worth_ms)

    def _add(self, metric: str, unit: str, value: float, ratio: float | None = None) -> None:
        self._report.add(f"{self._seats} seats", metric, unit, value, ratio)


@asynccontextmanager
async def _place(report: Report, seats: int, size: Size) -> AsyncIterator[Fleet]:
    """A server, four nodes that are not started, and an ear; all of it is gone afterwards."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = EmbeddedServer(folder / "server", sync="interval")
        await server.start()
        stack.push_async_callback(server.stop)
        assert server.pid is not None
        address = server.address
        bare = await _bare(address, seats)
        url = address.servers[0].replace("//", f"//{address.user}:{address.password}@")
        client = await nats.connect(url)
        stack.push_async_callback(client.close)
        rows = Rows()
        await rows.listen(client)
        members = [
            Member(Order(id, url, seats, str(folder / id), size.ttl_s))
            for id in ("first", "second", "third", "fourth")
        ]
        for member in members:
            stack.push_async_callback(member.stop)
        yield Fleet(report, members, psutil.Process(server.pid), rows, bare, seats, size)


async def _bare(address: Address, seats: int) -> float:
    wire = Wire(address)
    await wire.open(10.0)
    try:
        return await bare_writes(Api(wire), seats, ESTABLISH_LIMIT)
    finally:
        await wire.close()


def _spent(process: psutil.Process) -> float:
    """Seconds of processor time so far."""
    times = process.cpu_times()
    return float(times.user + times.system)
