"""What does a message cost, a question, an actor? And what do timers that wait?

Each system has a process of its own. The limit is what asyncio has for the same: two tasks and
two bare queues. Seconds are those of the processor, of all processes of a system. Whoever is a
process for each actor is asked for less.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from typing import Final

from benchmarks.peers.face import MODULES, NEEDS, Measured
from benchmarks.report import OURS, Report
from benchmarks.rounds import compare, in_turns

LIMIT: Final = "asyncio.Queue"
HEAVY: Final = "thespian multiprocTCPBase"

VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "ping_pong": ("ping-pong", "msg/s"),
    "one_way": ("one way", "msg/s"),
    "ask": ("ask", "asks/s"),
    "create": ("create", "actors/s"),
}
"""What is asked of each, and what the rate of it is called."""

TIMERS: Final = (0, 1000, 6000)
WITH_TIMERS: Final = (LIMIT, OURS, "thespian simpleSystemBase")


@dataclass(frozen=True)
class Size:
    """Messages, actors that are made, and actors whose memory is measured; all are divided by
    `heavy` where an actor is a process, or where timers are in the way, and by `slow` where it is
    anybody else's."""

    messages: int
    actors: int
    idle: int
    rounds: int
    timers: tuple[int, ...] = TIMERS
    slow: int = 10
    heavy: int = 200


FULL: Final = Size(messages=50_000, actors=2000, idle=10_000, rounds=5)
QUICK: Final = Size(messages=2000, actors=40, idle=400, rounds=1, timers=(0, 100))


def run(*, quick: bool) -> Report:
    report = Report("actors")
    asyncio.run(measure(report, QUICK if quick else FULL))
    return report


async def measure(report: Report, size: Size) -> None:
    names = [name for name in MODULES if name not in NEEDS or find_spec(NEEDS[name])]
    async with AsyncExitStack() as closing:
        systems = [Measured(name) for name in names]
        for one in systems:
            await _opened(one, closing)
        for verb, (metric, unit) in VERBS.items():
            compare(report, await _rates(systems, verb, size), LIMIT, metric, unit)
    await _memory(report, names, size)
    await _timers(report, [name for name in names if name in WITH_TIMERS], size)
    for name in sorted(NEEDS.keys() - set(names)):
        report.missing(name, "not installed (pip install '.[bench]')")


async def _opened(one: Measured, closing: AsyncExitStack) -> None:
    await one.open()
    closing.push_async_callback(one.close)
    await one.do("ping_pong", 2)


async def _rates(
    systems: Sequence[Measured], verb: str, size: Size
) -> Mapping[str, Sequence[float]]:
    rates: dict[str, list[float]] = {one.name: [] for one in systems}
    for one in in_turns(systems, size.rounds):
        count = _count(one.name, size.actors if verb == "create" else size.messages, size)
        if verb == "create":  # those of the round before would be waited for, and be in the way
            async with AsyncExitStack() as closing:
                fresh = Measured(one.name)
                await _opened(fresh, closing)
                rates[one.name].append(count / await fresh.do(verb, count))
        else:
            rates[one.name].append(count / await one.do(verb, count))
    return rates


async def _memory(report: Report, names: Sequence[str], size: Size) -> None:
    """Once is enough: it does not depend on the hour."""
    found: dict[str, list[float]] = {}
    for name in names:
        async with AsyncExitStack() as closing:
            one = Measured(name)
            await _opened(one, closing)
            found[name] = [await one.do("memory", _count(name, size.idle, size))]
    compare(report, found, LIMIT, "memory", "KiB/actor")


async def _timers(report: Report, names: Sequence[str], size: Size) -> None:
    """Ping-pong beside timers that wait. Compared with itself: what do they take away?"""
    for name in names:
        rates: dict[int, list[float]] = {pending: [] for pending in size.timers}
        async with AsyncExitStack() as closing:
            systems = {pending: Measured(name) for pending in size.timers}
            for pending, one in systems.items():
                await _opened(one, closing)
                await one.do("wait_for", pending)
            for pending in in_turns(size.timers, size.rounds):
                share = 1 if name in (LIMIT, OURS) else size.heavy  # it looks at each timer
                count = max(10, size.messages // share)
                took_s = await systems[pending].do("ping_pong", count)
                rates[pending].append(count / took_s)
        none = rates[size.timers[0]]
        for pending, measured in rates.items():
            ratio = median(mine / bare for mine, bare in zip(measured, none, strict=True))
            metric = f"ping-pong, {pending} timers"
            report.add(name, metric, "msg/s", median(measured), ratio)


def _count(name: str, count: int, size: Size) -> int:
    """Even, and of each at least some."""
    if name == HEAVY:
        count //= size.heavy
    elif name not in (LIMIT, OURS):
        count //= size.slow
    return max(10, count - count % 2)
