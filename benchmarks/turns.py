"""From a webhook to a settled turn: how many a second, and how long does one take below that?

Nodes are processes of their own, handlers do nothing, servers sync each write as a node's own
does by default. First as many as the nodes take, posted over connections that each wait for their
answer: the saturation rate. Then parts of that rate, whoever is late; a turn's time runs from the
moment at which its webhook was due.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import nats

from benchmarks.cluster import open_servers
from benchmarks.hooks import Hooks, Settled
from benchmarks.member import Member, Order, until
from benchmarks.report import Report
from benchmarks.rows import percentile

TTL_S: Final = 20.0
MOVED_S: Final = 120.0
SETTLED_S: Final = 300.0
PARTS: Final = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Size:
    """`saturated`: webhooks that find the rate; `span_s` of a part of it, and `least` webhooks
    however slow that is."""

    nodes: tuple[int, ...]
    seats: int
    lines: int
    warm: int
    saturated: int
    span_s: float
    least: int


FULL: Final = Size(
    nodes=(1, 3), seats=60, lines=32, warm=200, saturated=1500, span_s=20.0, least=120
)
QUICK: Final = Size(nodes=(1,), seats=4, lines=4, warm=8, saturated=40, span_s=0.5, least=10)


def run(*, quick: bool) -> Report:
    report = Report("turns")
    size = QUICK if quick else FULL
    for nodes in size.nodes:
        asyncio.run(measure(report, nodes, size))
    return report


async def measure(report: Report, nodes: int, size: Size) -> None:
    subject = "crewlet, 1 node" if nodes == 1 else f"crewlet, {nodes} nodes, R{nodes}"
    async with _company(nodes, size) as (hooks, settled):
        await _saturated(hooks, settled, size.warm)
        rate = await _saturated(hooks, settled, size.saturated)
        report.add(subject, "saturation", "turns/s", rate)
        for part in PARTS:
            count = max(size.least, int(rate * part * size.span_s))
            requests = hooks.prepare(count)
            due = await hooks.at_rate(list(requests.values()), rate * part)
            ends = await settled.wait(list(requests), SETTLED_S)
            taken = sorted(end - at for end, at in zip(ends, due, strict=True))
            for per_cent in (50, 99):
                worth_ms = 1000 * percentile(taken, per_cent)
                report.add(subject, f"at {part:.0%}, p{per_cent}", "ms", worth_ms)


async def _saturated(hooks: Hooks, settled: Settled, count: int) -> float:
    """Turns a second, from the first webhook to the last turn."""
    requests = hooks.prepare(count)
    began = asyncio.get_running_loop().time()
    await asyncio.gather(*(hooks.post(request) for request in requests.values()))
    ends = await settled.wait(list(requests), SETTLED_S)
    return count / (max(ends) - began)


@asynccontextmanager
async def _company(nodes: int, size: Size) -> AsyncIterator[tuple[Hooks, Settled]]:
    """Nodes with all seats taken, somebody who posts to them, and an ear."""
    async with AsyncExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        servers = await closing.enter_async_context(open_servers(nodes, "always"))
        secret = secrets.token_hex(16)
        members = [
            Member(
                Order(
                    id=f"node-{at + 1}",
                    url=servers.url,
                    seats=size.seats,
                    data=str(folder / str(at)),
                    ttl_s=TTL_S,
                    replicas=servers.replicas,
                    secret=secret,
                )
            )
            for at in range(nodes)
        ]
        for member in members:
            closing.push_async_callback(member.stop)
        await asyncio.gather(*(member.start() for member in members))
        await until(lambda: sum(len(one.established) for one in members) == size.seats, MOVED_S)
        client = await nats.connect(servers.urls[0])
        closing.push_async_callback(client.close)
        settled, hooks = Settled(), Hooks(secret, size.seats)
        await settled.listen(client)
        await hooks.connect([member.web for member in members], size.lines)
        closing.push_async_callback(hooks.close)
        yield hooks, settled
