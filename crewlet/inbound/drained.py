"""A drain of deliveries from outside: routed side by side, each settled by what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from actors.delivery import Ack, Defer, Letter, Nak, Outcome, Partition, Partly
from actors.ports import Clock
from crewlet.inbound.letters import event_of
from crewlet.inbound.side_by_side import Reading, keys_of, predecessors, read

AT_ONCE: Final = 16
"""Deliveries of a drain. Each waits for a handful of answers, one after the other, and the broker
answers many at a time as fast as one."""

BEGIN_WITHIN_S: Final = 10.0
"""A delivery is nobody else's for 20 s (docs/contract.md 278): one that has waited for so long, for
lookups before it, goes back to the head unrouted."""

LATE: Final = "those before it took too long"

log = structlog.get_logger(__name__)

Route = Callable[[Reading], Awaitable[Outcome]]


async def routed(partition: Partition, route: Route, clock: Clock) -> Outcome | Partly:
    """Every delivery is tried, whatever becomes of another."""
    letters = sorted(partition.letters, key=lambda letter: letter.delivery.position)
    readings = [read(event_of(letter)) for letter in letters]
    if len(readings) == 1:
        return await route(readings[0])
    until, ends = clock.monotonic() + BEGIN_WITHIN_S, list[asyncio.Task[Outcome]]()

    async def one(reading: Reading, waits: Sequence[asyncio.Task[Outcome]]) -> Outcome:
        if waits:
            await asyncio.wait(waits)
        if clock.monotonic() >= until:
            return Defer(LATE, retry_after_s=0.0)
        try:
            return await route(reading)
        except Exception as error:
            log.exception("delivery_not_routed", id=reading.event.id)
            return Nak(f"{type(error).__name__}: {error}")

    async with asyncio.TaskGroup() as group:
        before = predecessors([keys_of(reading) for reading in readings])
        for reading, indices in zip(readings, before, strict=True):
            waits = [ends[at] for at in sorted(indices)]
            ends.append(group.create_task(one(reading, waits)))
    return together(letters, [end.result() for end in ends])


def together(letters: Sequence[Letter], outcomes: Sequence[Outcome]) -> Outcome | Partly:
    """What is to be said of all of them: those that are done are, and the rest share a fate, the
    failures' where there are some."""
    pairs = list(zip(letters, outcomes, strict=True))
    done = {letter.id for letter, outcome in pairs if isinstance(outcome, Ack)}
    left = [outcome for letter, outcome in pairs if letter.id not in done]
    failed = [outcome.reason for outcome in left if isinstance(outcome, Nak)]
    if not left:
        return Ack()
    rest = Nak("; ".join(failed)[:500]) if failed else left[0]
    return Partly(tuple(done), rest) if done else rest
