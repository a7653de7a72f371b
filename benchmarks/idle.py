"""What do seats cost that have nothing to do?

Thousands of them, each with its three mailboxes attached (inbox, control, reflect): one parked
pull a mailbox, which the server ends after some minutes and the client sends anew. Processor
time is that of whole minutes, so that those ends are in it; the worst minute is reported.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import psutil

from actors.delivery import Ack, Mailbox, Outcome, Partition
from actors.node import NodeSpec
from actors.ports import Consumed
from actors.runtime import SeatRuntime
from actors.seat import SeatSpec
from benchmarks.place import Place, open_place
from benchmarks.report import Report
from crewlet import topics
from crewlet.broker.pull import EXPIRY_S
from crewlet.inbound.letters import read
from crewlet.node.mailboxes import CONCURRENCY

BOXES: Final = 3


@dataclass(frozen=True)
class Size:
    """`settle_s` after the start: looking once for what a broker gave up is not idleness."""

    seats: int
    settle_s: float
    span_s: float
    spans: int


# Whole minutes, and enough of them that each parked pull has ended at least once.
FULL: Final = Size(
    seats=3000, settle_s=35.0, span_s=60.0, spans=max(2, ceil(EXPIRY_S[1] / 60.0) + 1)
)
QUICK: Final = Size(seats=300, settle_s=5.0, span_s=20.0, spans=1)


def run(*, quick: bool) -> Report:
    report = Report("idle")
    asyncio.run(measure(report, QUICK if quick else FULL))
    return report


async def measure(report: Report, size: Size) -> None:
    handles = [f"s{n}" for n in range(size.seats)]
    subject = f"{size.seats} seats, {BOXES * size.seats} mailboxes attached"
    async with open_place(sync="always") as place:
        await _ensure(place, [box for handle in handles for box in _boxes(handle)])
        server = psutil.Process(place.broker.server_pid)
        client = psutil.Process()
        before, server_before = _resident(client), _resident(server)
        runtime = SeatRuntime(NodeSpec(place.broker, [_seat(handle) for handle in handles]))
        await runtime.start()
        await asyncio.sleep(size.settle_s)
        a_seat = (_resident(client) - before) / size.seats
        server_a_seat = (_resident(server) - server_before) / size.seats
        busy, server_busy = await _busy((client, server), size)
        await runtime.drain(5.0)
        await runtime.stop()
    span = f"cpu, worst of {size.spans} x {size.span_s:.0f} s"
    report.add(subject, f"client {span}", "%", busy)
    report.add(subject, f"server {span}", "%", server_busy)
    report.add(subject, "client memory", "KiB/seat", a_seat)
    report.add(subject, "server memory, attaching", "KiB/seat", server_a_seat)


def _boxes(handle: str) -> tuple[Mailbox, Mailbox, Mailbox]:
    return topics.inbox_of(handle), topics.control_of(handle), topics.reflect_of(handle)


def _seat(handle: str) -> SeatSpec:
    return SeatSpec(handle, *(Consumed(box, read, _nothing) for box in _boxes(handle)))


async def _nothing(partition: Partition) -> Outcome:
    return Ack()


async def _ensure(place: Place, wanted: Sequence[Mailbox]) -> None:
    gate = asyncio.Semaphore(CONCURRENCY)

    async def one(mailbox: Mailbox) -> None:
        async with gate:
            await place.broker.ensure(mailbox)

    await asyncio.gather(*(one(mailbox) for mailbox in wanted))


async def _busy(processes: Sequence[psutil.Process], size: Size) -> list[float]:
    """Per cent of one core that each process used in its worst span."""
    worst = [0.0 for _ in processes]
    for _ in range(size.spans):
        before = [_spent(process) for process in processes]
        await asyncio.sleep(size.span_s)
        used = [_spent(process) - was for process, was in zip(processes, before, strict=True)]
        worst = [max(was, now) for was, now in zip(worst, used, strict=True)]
    return [100 * seconds / size.span_s for seconds in worst]


def _spent(process: psutil.Process) -> float:
    """Seconds of processor time so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _resident(process: psutil.Process) -> float:
    """KiB, with what can be collected collected."""
    gc.collect()
    return float(process.memory_info().rss) / 1024
