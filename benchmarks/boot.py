"""How long does a company take to stand, and what does a seat cost?

First the mailboxes alone. Then one node, N seats, the embedded broker: boot from nothing (every
mailbox is made), one message to each seat until all are worked, resident memory; then the
second boot, where all exists.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from benchmarks import mailboxes
from benchmarks.report import Report
from crewlet import Node, Turn
from crewlet.company import NodeSettings
from crewlet.events import catalogue as types


def run(*, quick: bool) -> Report:
    report = Report("boot")
    asyncio.run(_run(report, 100 if quick else 1000, rounds=1 if quick else 3))
    return report


async def _run(report: Report, seats: int, rounds: int) -> None:
    await mailboxes.measure(report, seats=seats, rounds=rounds)
    subject = f"crewlet, {seats} seats"
    with tempfile.TemporaryDirectory() as folder:
        async with _booted(report, f"{subject}, first boot", seats, Path(folder)) as node:
            await _work_each(report, subject, node, seats)
            mine = psutil.Process()
            report.add(subject, "memory, node", "MiB", mine.memory_info().rss / 2**20)
            for child in mine.children():
                report.add(subject, "memory, broker", "MiB", child.memory_info().rss / 2**20)
        async with _booted(report, f"{subject}, second boot", seats, Path(folder)):
            pass


@asynccontextmanager
async def _booted(report: Report, subject: str, seats: int, data: Path) -> AsyncIterator[Node]:
    company = mailboxes.company_of(seats)
    began = time.perf_counter()
    node = Node(company, turn=_nothing, settings=NodeSettings(), data=data, web=False)
    async with node:
        report.add(subject, "boot", "s", time.perf_counter() - began)
        yield node
        began = time.perf_counter()
    report.add(subject, "stop", "s", time.perf_counter() - began)


async def _work_each(report: Report, subject: str, node: Node, seats: int) -> None:
    """One message to each seat; done when the last turn is recorded as completed."""
    worked: set[str] = set()
    done = asyncio.Event()

    def heard(topic: str, event: object) -> None:
        if getattr(event, "type", "") == types.AGENT_TURN_COMPLETED:
            worked.add(event.value("agent_role", str, ""))  # type: ignore[attr-defined]
            if len(worked) == seats:
                done.set()

    node.queue.add_listener(heard)
    began = time.perf_counter()
    await asyncio.gather(*(node.send(f"s{n}", "hello") for n in range(seats)))
    report.add(subject, "one message each, sent", "s", time.perf_counter() - began)
    await asyncio.wait_for(done.wait(), timeout=300)
    report.add(subject, "one message each, worked", "s", time.perf_counter() - began)


async def _nothing(turn: Turn) -> None:
    return None
