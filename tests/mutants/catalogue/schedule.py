"""Faults of the clock's work: labels, since when an entry stands, claims, what was dealt with."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any

from actors.tenure import Tenure
from crewlet.schedule import claims
from crewlet.schedule import fires as pure
from crewlet.schedule.claims import Claim, Claims
from crewlet.schedule.fires import Fire, Missed
from crewlet.schedule.memory import Memories, Memory
from crewlet.schedule.scheduler import Scheduler
from tests.mutants.catalogue.cases import schedule
from tests.mutants.mutant import Patches, Tier

TIER = Tier("schedule")


@TIER.fault(
    schedule(
        "field_reports.py::test_three_days_around_a_change_and_a_node_killed_in_the_changed_hour"
        "[autumn]"
    ),
    lines=(122,),
)
def a_label_has_no_offset(patch: Patches) -> None:
    """The second pass of an hour looks claimed: half-hourly work is silent for one hour."""
    label = pure.label

    def local(instant: datetime, zone: str) -> str:
        return label(instant, zone)[:16]

    patch.set(pure, "label", local)


@TIER.fault(
    schedule("fires.py::test_nothing_fires_for_a_moment_before_the_entry_was_there"),
    schedule(
        "field_reports.py::test_an_entry_that_was_moved_does_not_make_up_for_what_it_never_was"
    ),
    lines=(122,),
)
def an_entry_has_always_been_there(patch: Patches) -> None:
    """What was edited at noon makes up for half past eleven."""
    look = pure._look

    def without_since(one: Any, looked: datetime, now: datetime) -> Any:
        return look(pure.Standing(one.entry, datetime(2000, 1, 1, tzinfo=UTC)), looked, now)

    patch.set(pure, "_look", without_since)


@TIER.fault(
    schedule(
        "scheduler.py::test_a_node_killed_at_any_step_leaves_nothing_out_and_nothing_twice[2-False]"
    ),
    lines=(122,),
)
def a_claim_is_as_good_as_a_fire(patch: Patches) -> None:
    """A node that dies between the claim and the task has used the claim up: it never fires."""
    take = Claims.take

    async def taken_is_done(mine: Claims, fire: Fire, target: str, now: datetime) -> Claim:
        claim = await take(mine, fire, target, now)
        ours = claim.at == now and claim.node == mine._node_id
        return claim if ours else Claim(key="", label="", target="", at=now, node="", done=True)

    patch.set(Claims, "take", taken_is_done)


@TIER.fault(
    schedule("scheduler.py::test_two_that_both_think_that_it_is_theirs_fire_once[0]"),
    lines=(122,),
)
def claims_are_not_shared(patch: Patches) -> None:
    """Each node claims in a name of its own: every one of them fires."""
    key_of, times = claims.key_of, count()

    def anew(fire: Fire, target: str) -> str:
        return f"{key_of(fire, target)}.{next(times)}"

    patch.set(claims, "key_of", anew)


@TIER.fault(
    schedule("scheduler.py::test_a_store_that_is_away_delays_a_fire_and_loses_none"),
    lines=(122,),
)
def every_start_begins_now(patch: Patches) -> None:
    """What came due while nobody looked is neither made up for nor said."""
    read = Memories.read

    async def forgetful(memories: Memories) -> Memory | None:
        memory = await read(memories)
        far = datetime(9999, 1, 1, tzinfo=UTC)
        return None if memory is None else Memory(looked=far, entries=memory.entries)

    patch.set(Memories, "read", forgetful)


@TIER.fault(
    schedule("field_reports.py::test_a_node_that_slept_makes_up_for_one_fire_each[alone]"),
    lines=(122,),
)
def a_gap_fires_for_every_minute(patch: Patches) -> None:
    """A machine that slept wakes up to four fires in a row."""

    async def all_of_them(scheduler: Scheduler, missed: Missed, tenure: Tenure) -> Any:
        for fire in missed.fires:
            await scheduler._fire(fire, tenure)

    patch.set(Scheduler, "_missed", all_of_them)
