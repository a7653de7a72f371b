"""What does a durable publish cost, to the acknowledgement of the broker?

Events of 500 bytes, one after the other and so many at a time, on one server and on three that
each hold every message, synced each time and at intervals. The limit is a bare request of nats-py
that JetStream answers. Beside it stand nats-py's own `publish`, our broker port (a message id, a
seat that has a mailbox), and the publisher as a node has it: an event made and encoded, ten
listeners told. What these cost by themselves is a part of `machine`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import nats

from benchmarks.cluster import Servers, open_servers
from benchmarks.envelope import LISTENERS, maker, publisher
from benchmarks.pull import events
from benchmarks.report import OURS, Report
from benchmarks.rounds import compare, in_turns
from crewlet import topics
from crewlet.broker.dial import Address
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.settings import Sync

LIMIT: Final = "nats-py request, no message id"
FORMS_S: Final = 60.0

Publish = Callable[[int], Awaitable[object]]
"""Publishes the n-th event of the run; returns with its acknowledgement."""


@dataclass(frozen=True)
class Size:
    """Messages a round: fewer where each waits for the disk or for three servers."""

    rounds: int
    count: int
    window: int
    places: Sequence[tuple[int, Sync]]


PLACES: Final[Sequence[tuple[int, Sync]]] = (
    (1, "interval"),
    (1, "always"),
    (3, "interval"),
    (3, "always"),
)
FULL: Final = Size(rounds=5, count=600, window=64, places=PLACES)
QUICK: Final = Size(rounds=1, count=64, window=16, places=PLACES[:1])


def run(*, quick: bool) -> Report:
    report = Report("publish")
    size = QUICK if quick else FULL
    for servers, sync in size.places:
        asyncio.run(measure(report, servers, sync, size))
    return report


async def measure(report: Report, servers: int, sync: Sync, size: Size) -> None:
    async with AsyncExitStack() as closing:
        place = await closing.enter_async_context(open_servers(servers, sync))
        ways = await _ways(place, closing)
        for at_once in (1, size.window):
            count = size.count if at_once > 1 else size.count // 4
            rates: dict[str, list[float]] = {way: [] for way in ways}
            for way in ways:
                await _rate(ways[way], at_once, at_once)
            for way in in_turns(list(ways), size.rounds):
                rates[way].append(await _rate(ways[way], count, at_once))
            metric = f"R{servers}, {sync}, {_called(at_once)}"
            compare(report, rates, LIMIT, metric, "msg/s")


def _called(at_once: int) -> str:
    return "one after the other" if at_once == 1 else f"{at_once} at once"


async def _rate(publish: Publish, count: int, at_once: int) -> float:
    """Acknowledgements a second."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await publish(number)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return count / (time.perf_counter() - began)


async def _ways(place: Servers, closing: AsyncExitStack) -> dict[str, Publish]:
    """All of them into the mailbox of one seat, which nobody reads."""
    address = Address((place.urls[0],), name="benchmark")
    patience_s = FORMS_S if place.replicas > 1 else 0.0
    broker = JetStreamBroker(address, replicas=place.replicas, patience_s=patience_s)
    await broker.start()
    closing.push_async_callback(broker.stop)
    await broker.ensure(topics.inbox_of("seat"))
    topic = topics.inbox("seat")
    client = await nats.connect(place.urls[0])
    closing.push_async_callback(client.close)
    stream, ids = client.jetstream(), iter(range(10**9))
    body = events(1, 1)[0]
    quiet, told = (publisher(broker, listeners) for listeners in (0, LISTENERS))
    made = maker(body)

    async def bare(number: int) -> None:
        await client.request(topic, body, timeout=60)

    return {
        LIMIT: bare,
        "nats-py publish, no message id": lambda _: stream.publish(topic, body, timeout=60),
        "nats-py publish": lambda _: stream.publish(
            topic, body, timeout=60, headers={"Nats-Msg-Id": f"bare-{next(ids)}"}
        ),
        "crewlet, broker port": lambda _: broker.publish(topic, body, message_id=f"{next(ids)}"),
        OURS: lambda _: quiet.publish(topic, made()),
        f"crewlet, {LISTENERS} listeners": lambda _: told.publish(topic, made()),
    }
