"""The record of seats: an absence ends on sight, and who comes back waits for an end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crewlet.coordination.store import SEATS, Conflict, Store
from crewlet.revisions.retirement import absent, present, retired, retiring
from crewlet.revisions.roster import WAIT_S, Roster
from tests.coordination.stores import both, run
from tests.inbound.inbound_bench import LoopClock

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


async def state(roster: Roster, handle: str) -> str:
    known = await roster.of(handle)
    assert known is not None
    return known.record.state


@both
@pytest.mark.certifies(148, 151)
def test_whatever_the_record_said_the_seat_is_there(kind: str, tmp_path: Path):
    async def play(one: Store, other: Store) -> None:
        roster = Roster(one, LoopClock())
        await roster.write("gone", absent(NOW), None)
        await roster.write("dead", retired(retiring(absent(NOW), by="n", now=NOW), now=NOW), None)
        await one.put(SEATS, "odd", b"of a later build")
        before = await roster.write("here", present(NOW), None)
        await asyncio.gather(
            roster.register(["gone", "dead", "odd", "here", "new"]),
            Roster(other, LoopClock()).register(["gone", "new", "other"]),
        )
        assert {
            handle: known and known.record.state for handle, known in (await roster.all()).items()
        } == dict.fromkeys(["gone", "dead", "odd", "here", "new", "other"], "present")
        after = await roster.of("here")
        assert after is not None and after.stored == before.stored, "it is not written again"

    run(kind, tmp_path, play)


@pytest.mark.certifies(153)
def test_a_seat_that_comes_back_waits_for_the_end_of_its_retirement(tmp_path: Path):
    async def play(one: Store, other: Store) -> None:
        here, there = Roster(one, LoopClock()), Roster(other, LoopClock())
        mark = await there.write("ops", retiring(absent(NOW), by="n2", now=NOW), None)
        back = asyncio.ensure_future(here.register(["ops"]))
        await asyncio.sleep(10)
        assert not back.done() and await state(here, "ops") == "retiring"
        await there.write("ops", retired(mark.record, now=NOW), mark)
        await back
        assert await state(here, "ops") == "present"

    run("twin", tmp_path, play)


@pytest.mark.certifies(153)
def test_a_mark_whose_owner_died_is_nobodys_after_a_while(tmp_path: Path):
    async def play(one: Store, other: Store) -> None:
        here, there = Roster(one, LoopClock()), Roster(other, LoopClock())
        mark = await there.write("ops", retiring(absent(NOW), by="n2", now=NOW), None)
        began = asyncio.get_running_loop().time()
        await here.register(["ops"])
        assert asyncio.get_running_loop().time() - began >= WAIT_S
        with pytest.raises(Conflict):
            await there.write("ops", retired(mark.record, now=NOW), mark)
        assert await state(there, "ops") == "present"

    run("twin", tmp_path, play)


@pytest.mark.certifies(153)
def test_a_mark_that_is_made_anew_is_somebodys(tmp_path: Path):
    """Its owner is at work: it has as long again from then on."""

    async def play(one: Store, other: Store) -> None:
        here, there = Roster(one, LoopClock()), Roster(other, LoopClock())
        mark = await there.write("ops", retiring(absent(NOW), by="n2", now=NOW), None)
        back = asyncio.ensure_future(here.register(["ops"]))
        for _ in range(4):
            await asyncio.sleep(WAIT_S - 1)
            assert not back.done()
            mark = await there.write("ops", retiring(mark.record, by="n2", now=NOW), mark)
        await asyncio.sleep(WAIT_S - 1)
        assert not back.done()
        await asyncio.sleep(2)
        assert back.done() and await state(here, "ops") == "present"

    run("twin", tmp_path, play)
