"""One seed from the first boot to the last judgement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct, field

from actors.simulation.checkers import Ownership, Rules, Violation
from actors.simulation.drills import Drills
from actors.simulation.faults import FAULTS_S, Plan
from actors.simulation.fleet import Fleet
from actors.simulation.history import History, Record, named
from actors.simulation.site import Site
from actors.simulation.trouble import Trouble
from actors.simulation.workload import Workload
from actors.simulation.world import World

BOOT_S: Final = 30.0
"""Within this every seat has an owner, or the run ends there."""

SiteOf = Callable[[Fleet], Site]


class Outcome(Struct, frozen=True):
    """What became of a seed. `digest` is of its whole history; `last` are its last records, to
    be shown beside a violation; `figures` are the worst that its checkers measured."""

    seed: int
    profile: str
    violations: tuple[Violation, ...]
    digest: str
    records: int
    handoffs: int
    turns: int
    virtual_s: float
    seen: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    last: tuple[Record, ...] = ()


def run(
    plan: Plan,
    site_of: SiteOf,
    *,
    rules: Rules | None = None,
    faults_s: float = FAULTS_S,
    trace: BinaryIO | None = None,
) -> Outcome:
    """Play the plan; ends with the first violation. `trace` takes each record as a JSON object on
    a line of its own, with the step of the world that it belongs to."""
    world = World(plan.seed)  # type: ignore[abstract] # what sockets and threads need
    history = History(lambda: world.now)
    if trace is not None:
        history.hear_all(partial(_write, trace, world))
    fleet = Fleet(world, plan, history, rules or Rules())
    fleet.site = site_of(fleet)
    turns = [0]
    history.hear(lambda record: _count(turns), ("turn_start",))
    try:
        world.run(_play(fleet, faults_s))
    finally:
        fleet.close()
        world.close()
    for broken in world.broken:
        fleet.fail("code", repr(broken)[:500])
    return _outcome(fleet, turns[0])


def _write(trace: BinaryIO, world: World, record: Record) -> None:
    trace.write(msgspec.json.encode({"step": world.step, **named(record)}) + b"\n")


def _count(turns: list[int]) -> None:
    turns[0] += 1


async def _play(fleet: Fleet, faults_s: float) -> None:
    workload = Workload(fleet)
    trouble = Trouble(fleet, workload)
    drills = Drills(fleet, workload, trouble)
    await fleet.site.prepare()
    await _boot(fleet)
    publishing = [asyncio.ensure_future(workload.run())]
    if fleet.plan.knobs.command_rate:
        publishing.append(asyncio.ensure_future(workload.run_commands()))
    await _befall(fleet, trouble, faults_s)
    workload.end()
    trouble.heal()
    fleet.site.calm()
    fleet.history.add("calm")
    ticking = asyncio.ensure_future(drills.tick())
    await drills.run()
    ticking.cancel()
    for task in publishing:
        task.cancel()
    fleet.history.add("over")
    audit = fleet.site.audit()
    for checker in fleet.checkers:
        checker.end(audit)


async def _boot(fleet: Fleet) -> None:
    for host in fleet.hosts:
        fleet.boot(host)
    until = fleet.world.now + BOOT_S
    while len(fleet.owner) < len(fleet.site.seats):
        await asyncio.sleep(0.5)
        if fleet.world.now > until:
            missing = [seat for seat in fleet.site.seats if seat not in fleet.owner]
            fleet.fail("L4", f"nobody holds {missing} {BOOT_S:g} s after the first boot")
            return


async def _befall(fleet: Fleet, trouble: Trouble, faults_s: float) -> None:
    trouble.begin(fleet.plan.decisions)
    await asyncio.sleep(faults_s)


def _outcome(fleet: Fleet, turns: int) -> Outcome:
    figures: dict[str, float] = {}
    for checker in fleet.checkers:
        figures.update(checker.figures())
    handoffs = sum(c.handoffs for c in fleet.checkers if isinstance(c, Ownership))
    violations: Sequence[Violation] = fleet.violations
    return Outcome(
        seed=fleet.plan.seed,
        profile=fleet.plan.profile,
        violations=tuple(violations),
        digest=fleet.history.digest,
        records=fleet.history.count,
        handoffs=handoffs,
        turns=turns,
        virtual_s=fleet.world.now,
        seen=dict(fleet.sometimes.seen),
        figures=figures,
        last=tuple(fleet.history.last) if violations else (),
    )
