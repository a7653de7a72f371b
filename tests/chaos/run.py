"""One run: a fleet under load and under faults, then healed, then judged."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from tests.chaos.checks import Turn, Verdicts, judge, ownerless, percentiles
from tests.chaos.fleet import TTL_S, Fleet, draw_ms
from tests.chaos.nemesis import Nemesis
from tests.chaos.plan import Budget, draw
from tests.chaos.stuck import stuck

PUBLISHERS = 8


class Wanted(Struct, frozen=True, kw_only=True):
    """What a run is to be. It ends when all faults were played and so many messages were sent,
    or when the `minutes` are over: then what was done is what is reported. `missing` says what
    was asked for and cannot be done on this machine."""

    seed: int = 1
    minutes: float = 10.0
    messages: int = 1500
    seats: int = 9
    nodes: int = 3
    servers: int = 1
    networks: bool = False
    backlog: int = 60
    pace: float = 1.0
    failpoints: bool = True
    disks: bool = False
    missing: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)


class Outcome(Struct):
    """Of a run. Times are seconds; `clean` takeovers are those that no other fault overlapped."""

    wanted: Wanted
    verdicts: Verdicts
    healed: bool
    settled: bool
    surprises: list[str]
    faults: dict[str, dict[str, int]]
    crash: dict[str, float]
    crash_clean: dict[str, float]
    graceful: dict[str, float]
    ownerless: dict[str, float]
    boots: int
    moves: int
    took_s: float
    said: dict[str, int]
    revisions: dict[str, int]

    @property
    def wrong(self) -> list[str]:
        """What a good run has none of."""
        found = [f"{name}: {which[:5]}" for name, which in self.verdicts.faults.items()]
        if not self.healed:
            found.append("not everything was worked after the last fault")
        if not self.settled:
            found.append("the seats did not come to rest in the end")
        if len(set(self.revisions.values())) != 1:
            found.append(f"the nodes do not work by one revision: {self.revisions}")
        return found + self.surprises


Say = Callable[[str], None]


async def play(wanted: Wanted, folder: Path, say: Say = lambda _: None) -> Outcome:
    """Play it in this folder, which keeps the logs and records."""
    began = time.monotonic()
    fleet = Fleet(
        folder,
        nodes=wanted.nodes,
        seats=wanted.seats,
        servers=wanted.servers,
        networks=wanted.networks,
        disks=wanted.disks,
        window_s=0.02,
    )
    async with fleet:
        await fleet.boot()
        say(f"{wanted.nodes} nodes share the seats after {time.monotonic() - began:.1f} s")
        nemesis = Nemesis(fleet, wanted.budget, TTL_S, failpoints=wanted.failpoints)
        deadline = began + wanted.minutes * 60
        load = Load(fleet, wanted, lambda: nemesis.healing, deadline)
        telling = asyncio.create_task(_tell(fleet, nemesis, say))
        try:
            plan = draw(wanted.seed, wanted.budget, TTL_S, wanted.pace)
            playing = nemesis.play(plan, lambda: time.monotonic() < deadline)
            await asyncio.gather(load.run(), playing)
            say("healed; waiting for the rest")
            healed = await fleet.worked(60 + wanted.backlog)
            settled = await _settles(fleet, even=not nemesis.count("move"))
            revisions = await _agreed(fleet)
        finally:
            telling.cancel()
        if not healed:
            say(f"not worked: {fleet.waits_for()[:10]}")
            for line in await stuck(fleet):
                say(line)
        took_s = time.monotonic() - began
        return _outcome(wanted, fleet, nemesis, healed, settled, took_s, revisions)


class Load:
    """Publishes with so much outstanding, until the faults are over and all is sent."""

    def __init__(
        self, fleet: Fleet, wanted: Wanted, over: Callable[[], bool], deadline: float
    ) -> None:
        self._fleet = fleet
        self._wanted = wanted
        self._over = over
        self._deadline = deadline
        self._rng = random.Random(wanted.seed)
        self._number = 0

    async def run(self) -> None:
        await asyncio.gather(*(self._publish() for _ in range(PUBLISHERS)))

    def _goes_on(self) -> bool:
        if time.monotonic() > self._deadline:
            return False
        return self._number < self._wanted.messages or not self._over()

    async def _publish(self) -> None:
        rng = self._rng
        while self._goes_on():
            if self._fleet.outstanding >= self._wanted.backlog:
                await asyncio.sleep(0.02)
                continue
            self._number += 1
            talk = f"c{rng.randrange(5)}" if rng.random() < 0.2 else ""
            key = f"m{self._wanted.seed}-{self._number}"
            await self._fleet.send(
                rng.choice(self._fleet.seats), key, draw_ms(rng), conversation=talk
            )


async def _settles(fleet: Fleet, *, even: bool) -> bool:
    """Each seat is somebody's, for three sweeps of a lease of this TTL; in even shares, where no
    operator has sent a seat anywhere."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        before = fleet.owners()
        await asyncio.sleep(3 * TTL_S / 4)
        if fleet.owners() == before and "" not in before.values():
            return not even or fleet.even()
    return False


async def _agreed(fleet: Fleet) -> dict[str, int]:
    """Which revision each node works by, once that is the same one: a look takes 18 s."""
    deadline = time.monotonic() + 30
    while True:
        revisions = await fleet.revisions()
        together = len(revisions) == len(fleet.nodes) and len(set(revisions.values())) == 1
        if together or time.monotonic() > deadline:
            return revisions
        await asyncio.sleep(0.5)


async def _tell(fleet: Fleet, nemesis: Nemesis, say: Say) -> None:
    while True:
        await asyncio.sleep(10)
        counts = Counter(one.kind for one in nemesis.done)
        faults = ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts))
        say(
            f"{len(fleet.recorded.sent)} sent, {fleet.outstanding} outstanding; {faults}"
            + (f"; {len(nemesis.surprises)} surprises" if nemesis.surprises else "")
        )


# -- the numbers --------------------------------------------------------------------------


def _outcome(
    wanted: Wanted,
    fleet: Fleet,
    nemesis: Nemesis,
    healed: bool,
    settled: bool,
    took_s: float,
    revisions: dict[str, int],
) -> Outcome:
    turns = fleet.turns()
    crashes = crash_takeovers(fleet, turns)
    return Outcome(
        wanted=wanted,
        verdicts=judge(fleet.recorded, turns),
        healed=healed,
        settled=settled,
        surprises=nemesis.surprises,
        faults={
            kind: nemesis.where(kind)  # type: ignore[arg-type]
            for kind in sorted({one.kind for one in nemesis.done})
        },
        crash=percentiles([to - at for at, to in crashes]),
        crash_clean=percentiles([to - at for at, to in crashes if _clean(nemesis, at, to)]),
        graceful=percentiles(graceful_takeovers(fleet, turns)),
        ownerless=percentiles(ownerless(fleet.recorded.seat_rows)),
        boots=sum(len(node.lives) for node in fleet.nodes),
        moves=len(fleet.recorded.seat_rows),
        took_s=took_s,
        said=said(fleet),
        revisions=revisions,
    )


def crash_takeovers(fleet: Fleet, turns: list[Turn]) -> list[tuple[float, float]]:
    """From the death of a process to the next start of each message that it had begun and not
    completed."""
    completed = {row.turn for row in fleet.recorded.completed}
    starts: dict[str, list[float]] = {}
    for turn in turns:
        for key in turn.keys:
            starts.setdefault(key, []).append(turn.began)
    found = []
    deaths = {
        life.incarnation: life.ended
        for node in fleet.nodes
        for life in node.lives
        if life.code == -9
    }
    for turn in turns:
        at = deaths.get(turn.incarnation)
        if at is None or turn.turn in completed or turn.how == "cut":
            continue
        for key in turn.keys:
            after = [start for start in starts[key] if start > at]
            between = [start for start in starts[key] if turn.began < start <= at]
            if after and not between:
                found.append((at, min(after)))
    return found


def _clean(nemesis: Nemesis, at: float, to: float) -> bool:
    """Only one fault touches the time of a takeover: the death itself."""
    touching = [
        one
        for one in nemesis.done
        if one.kind != "move" and one.began < to and (one.ended or to) > at - 0.1
    ]
    return len(touching) <= 1


def graceful_takeovers(fleet: Fleet, turns: list[Turn]) -> list[float]:
    """From a release to the first turn of the successor, where mail was waiting by then."""
    found = []
    rows = sorted(fleet.recorded.seat_rows, key=lambda row: row.sequence)
    by_seat: dict[str, list[Any]] = {}
    for row in rows:
        by_seat.setdefault(row.seat, []).append(row)
    for seat, its in by_seat.items():
        for before, row in pairwise(its):
            if not before.released or row.released or before.node == row.node:
                continue
            first = next((t for t in turns if t.seat == seat and t.wall > before.wall), None)
            if first and first.node == row.node:
                waited = all(fleet.sent_wall.get(key, 0) < before.wall for key in first.keys)
                if waited:
                    found.append(first.wall - before.wall)
    return found


def said(fleet: Fleet) -> dict[str, int]:
    """What the nodes logged as errors, by name."""
    counts: Counter[str] = Counter()
    for node in fleet.nodes:
        if not node.log.exists():
            continue
        for line in node.log.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if row.get("level") in ("error", "critical"):
                    counts[row["event"]] += 1
            elif line.startswith("Traceback"):
                counts["Traceback"] += 1
    return dict(counts)
