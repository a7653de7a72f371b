"""How long is a seat without a node, when its own leaves in order and when it dies?

Two nodes, processes of their own, on a server that neither owns; one has all the seats and the
other has just joined. The first leaves: from the release of each seat to its mailboxes being
attached at the other. It comes back, and the other is killed: from the kill to the same, most
of which is the lease that has to run out.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import nats

from benchmarks.cluster import open_servers
from benchmarks.member import Member, Order, until
from benchmarks.report import OURS, Report
from benchmarks.rows import Rows, percentile

MOVED_S: Final = 300.0


@dataclass(frozen=True)
class Size:
    """How often each number of seats is handed over, and taken from the dead."""

    rounds: dict[int, int]
    ttl_s: float


FULL: Final = Size(rounds={1: 5, 1000: 2}, ttl_s=20.0)
QUICK: Final = Size(rounds={2: 1}, ttl_s=2.0)


def run(*, quick: bool) -> Report:
    report = Report("handoff")
    size = QUICK if quick else FULL
    for seats, rounds in size.rounds.items():
        asyncio.run(measure(report, seats, rounds, size.ttl_s))
    return report


async def measure(report: Report, seats: int, rounds: int, ttl_s: float) -> None:
    graceful: list[float] = []
    crash: list[float] = []
    async with _pair(seats, ttl_s) as (first, second, rows):
        await _started(first, seats)
        for _ in range(rounds):
            await second.start()
            graceful += await _leaves(first, second, rows, seats)
            await first.start()
            crash += await _dies(second, first, seats)
    many = "1 seat" if seats == 1 else f"{seats} seats"
    _say(report, f"{many}, its node leaves", graceful)
    _say(report, f"{many}, its node is killed, leases of {ttl_s:.0f} s", crash)


def _say(report: Report, what: str, taken: Sequence[float]) -> None:
    if not taken:
        raise RuntimeError(f"{what}: no seat was there to be handed over")
    for per_cent in (50, 99):
        worth_ms = 1000 * percentile(sorted(taken), per_cent)
        report.add(OURS, f"{what}, p{per_cent}", "ms", worth_ms)


async def _started(member: Member, seats: int) -> None:
    await member.start()
    await until(lambda: len(member.established) == seats, MOVED_S)


async def _leaves(one: Member, other: Member, rows: Rows, seats: int) -> list[float]:
    """What each seat that is not there yet went without."""
    rows.forget()
    already = set(other.established)
    one.ask_to_stop()
    await until(lambda: len(other.established) == seats, MOVED_S)
    await one.ended()
    moved = {handle: at for handle, at in other.established.items() if handle not in already}
    return rows.gaps(moved)


async def _dies(one: Member, other: Member, seats: int) -> list[float]:
    died = set(one.established)
    at = one.kill()
    await one.ended()
    await until(lambda: len(other.established) == seats, MOVED_S)
    return [when - at for handle, when in other.established.items() if handle in died]


@asynccontextmanager
async def _pair(seats: int, ttl_s: float) -> AsyncIterator[tuple[Member, Member, Rows]]:
    """Two nodes that are not started, and an ear for the rows of their leases."""
    async with AsyncExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        servers = await closing.enter_async_context(open_servers(1, "interval"))
        client = await nats.connect(servers.url)
        closing.push_async_callback(client.close)
        first, second = (
            Member(Order(id, servers.url, seats, str(folder / id), ttl_s))
            for id in ("first", "second")
        )
        for member in (first, second):
            closing.push_async_callback(member.stop)
        rows = Rows()
        await rows.listen(client)
        yield first, second, rows
