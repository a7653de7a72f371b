"""What does it cost to record a finished turn, once and by the holder of its seat only?

An embedded broker and rows of 180 bytes, as the ledger writes them, into the log of the leases.
The limit is a bare put that shows no fence. Beside ours stand the two forms that a fence can be
shown in: a header of the row itself, which cannot also say that the row is the first, and an
atomic batch, which can.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import median
from typing import Final

from actors.tenure import Fence
from benchmarks.place import Place, open_place
from benchmarks.report import Report
from crewlet.broker import names
from crewlet.broker.api import Api
from crewlet.broker.completion import AT, BATCH, COMMIT, EXPECT, EXPECT_OF, age_headers
from crewlet.broker.settings import Sync
from crewlet.broker.wire import Wire
from crewlet.coordination.store import LEASES, LEDGER, OWNERSHIP, Store, lease_key

ROW: Final = b"r" * 180
SEATS: Final = 50
LIMIT: Final = "bare put, no fence"
KEPT: Final[Mapping[Sync | None, str]] = {
    "interval": "",
    "always": ", synced",
    None: ", in memory",
}
"""How the server keeps its streams. One that is replicated stages a batch in memory too."""

Complete = Callable[[int], Awaitable[object]]
"""Records the n-th turn of the run."""


def run(*, quick: bool) -> Report:
    report = Report("completion")
    rounds, count = (1, 20) if quick else (5, 100)
    for sync in KEPT:
        for at_once in (1, 16):
            asyncio.run(measure(report, sync=sync, at_once=at_once, rounds=rounds, count=count))
    return report


async def measure(
    report: Report, *, sync: Sync | None, at_once: int, rounds: int, count: int
) -> None:
    async with open_place(sync) as place:
        wire = Wire(place.address)
        await wire.open(10.0)
        try:
            forms = await _forms(place, Api(wire))
            rates: dict[str, list[float]] = {form: [] for form in forms}
            for turn in range(rounds):
                order = list(forms)
                shift = turn % len(order)
                for form in order[shift:] + order[:shift]:
                    rates[form].append(await _rate(forms[form], count, at_once))
        finally:
            await wire.close()
    for form, measured in rates.items():
        ratios = [mine / limit for mine, limit in zip(measured, rates[LIMIT], strict=True)]
        report.add(
            f"{form}{KEPT[sync]}", f"{at_once} at once", "1/s", median(measured), median(ratios)
        )


async def _rate(complete: Complete, count: int, at_once: int) -> float:
    """Completions a second; so many turns end at the same time."""
    turns = iter(range(count))

    async def work() -> None:
        for turn in turns:
            await complete(turn)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return count / (time.perf_counter() - began)


async def _forms(place: Place, api: Api) -> dict[str, Complete]:
    store = place.broker.store
    fences = [await _taken(store, f"s{n}") for n in range(SEATS)]
    numbers = itertools.count()

    def fence(turn: int) -> Fence:
        return fences[turn % SEATS]

    def keys(rows: int) -> list[str]:
        return [f"dev.{next(numbers):032}" for _ in range(rows)]

    def ours(rows: int) -> Complete:
        return lambda turn: store.record(LEDGER, dict.fromkeys(keys(rows), ROW), fence(turn))

    return {
        LIMIT: lambda turn: _put(api, keys(1)[0], {}),
        "put with the fence": lambda turn: _put(api, keys(1)[0], _showing(fence(turn))),
        "batch, one row": lambda turn: _batch(api, keys(1), fence(turn)),
        "batch, five rows": lambda turn: _batch(api, keys(5), fence(turn)),
        "record, one row": ours(1),
        "record, five rows": ours(5),
    }


async def _taken(store: Store, seat: str) -> Fence:
    revision = await store.create(LEASES, lease_key(f"seat:{seat}"), b"{}")
    return Fence(f"seat:{seat}", 1, revision)


def _showing(fence: Fence) -> Mapping[str, str]:
    lease = names.keys_of(LEASES, lease_key(fence.resource))
    return {EXPECT: str(fence.revision), EXPECT_OF: lease}


async def _put(api: Api, key: str, shown: Mapping[str, str]) -> None:
    await api.ask(names.keys_of(LEDGER, key), ROW, headers=age_headers(LEDGER) | shown)


async def _batch(api: Api, keys: list[str], fence: Fence) -> None:
    """An empty message that shows the fence, and the rows that are each the first."""
    batch, first = secrets.token_hex(8), {EXPECT: "0"}
    showing = names.fence_of(OWNERSHIP, lease_key(fence.resource))
    messages = [(showing, b"", dict(_showing(fence)))]
    messages += [(names.keys_of(LEDGER, key), ROW, dict(first)) for key in keys]
    for at, (subject, body, shown) in enumerate(messages, 1):
        headers = shown | age_headers(LEDGER) | {BATCH: batch, AT: str(at)}
        if at == len(messages):
            await api.ask(subject, body, headers=headers | {COMMIT: "1"})
        else:
            api.wire.send(subject, body, headers=headers)
