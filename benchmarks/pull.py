"""How fast is a full mailbox emptied, and what does a seat add to pulling?

One process, an embedded broker, events of 500 bytes; first with a broker that the disk does
not hold up, then with one that syncs each write, as a node's does by default. The limit is a
bare loop of pulls of twenty; a seat decodes, splits into conversations, gives each to a turn
and settles it. Beside it stand other clients of the same server, and two task queues on Redis.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from importlib.util import find_spec
from statistics import median
from typing import Final

from benchmarks.contestants import (
    BATCH,
    Contestant,
    FastStream,
    NatsFetch,
    RawPull,
    SeatPath,
)
from benchmarks.peers.jobs import job_queues, name_missing
from benchmarks.place import Place, open_place
from benchmarks.report import Report
from crewlet.broker.settings import Sync
from crewlet.events import Event, Trace, encode
from crewlet.inbound.letters import PARTITION_KEY

EVENT_BYTES: Final = 500
WARM: Final = 400
LIMIT: Final = RawPull.subject
TWENTY: Final = "seat, twenty conversations"


def run(*, quick: bool) -> Report:
    report = Report("pull")
    asyncio.run(measure(report, rounds=1 if quick else 5, count=100 if quick else 4000))
    asyncio.run(
        measure(report, rounds=1 if quick else 3, count=100 if quick else 1000, synced=True)
    )
    if not _has_faststream():
        report.missing(FastStream.subject, "not installed (pip install '.[bench]')")
    name_missing(report)
    return report


async def measure(report: Report, *, rounds: int, count: int, synced: bool = False) -> None:
    """`count` messages a round and contestant, a multiple of `BATCH`. `synced`: the broker
    as a node has it by default, each write on the disk before it is answered."""
    sync: Sync = "always" if synced else "interval"
    contestants = [*_contestants(), *job_queues(sync)]
    rates: dict[str, list[float]] = {one.subject: [] for one in contestants}
    async with open_place(sync) as place, AsyncExitStack() as closing:
        for one in contestants:
            await one.open(place)
            closing.push_async_callback(one.close)
            await _drained(place, one, min(count, WARM))
        for turn in range(rounds):
            # Each goes first as often as any other: what a round leaves behind hits all alike.
            shift = turn % len(contestants)
            for one in contestants[shift:] + contestants[:shift]:
                rates[one.subject].append(count / await _drained(place, one, count))
    for subject, measured in rates.items():
        # Of one round each: what slowed a round slowed both sides of its ratio.
        ratios = [mine / limit for mine, limit in zip(measured, rates[LIMIT], strict=True)]
        metric = "throughput, synced" if synced else "throughput"
        report.add(subject, metric, "msg/s", median(measured), median(ratios))


def _contestants() -> list[Contestant]:
    peers = [FastStream(), FastStream(whole_batches=True)] if _has_faststream() else []
    ours = [SeatPath("seat, one conversation", "one"), SeatPath(TWENTY, "twenty")]
    return [RawPull(), NatsFetch(), *peers, *ours]


def _has_faststream() -> bool:
    return find_spec("faststream") is not None


async def _drained(place: Place, one: Contestant, count: int) -> float:
    """Seconds from the first pull until the server has the last acknowledgement."""
    await one.fill(place, events(count, BATCH if one.subject == TWENTY else 1))
    await one.ready(count)
    began = time.perf_counter()
    await one.drain(count)
    await one.emptied(place)
    took = time.perf_counter() - began
    await one.rest()
    return took


def events(count: int, conversations: int) -> Sequence[bytes]:
    """As a producer writes them: each `EVENT_BYTES` long, in so many conversations by turns."""
    return [_event(n, f"conversation-{n % conversations:02}") for n in range(count)]


def _event(number: int, conversation: str) -> bytes:
    def written(text: str) -> bytes:
        event = Event.new(
            "message_received",
            at=datetime(2026, 1, 1, second=number % 60, microsecond=number, tzinfo=UTC),
            trace=Trace(trace_id="0" * 32, span_id="0" * 16),
            payload={PARTITION_KEY: conversation},
            body={"text": text},
        )
        return encode(event)

    return written("x" * (EVENT_BYTES - len(written(""))))
