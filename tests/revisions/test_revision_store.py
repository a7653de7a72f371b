"""Revisions in the store: one is active, none is lost, and nobody undoes another's."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from crewlet.company import parse_company
from crewlet.coordination.store import CONFIG, Conflict, Store
from crewlet.errors import StoreUnavailable
from crewlet.revisions.revision import Revision, revision_of
from crewlet.revisions.store import KEPT, Revisions
from tests.coordination.stores import both, run

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def after(last: Revision | None, goal: str, by: str = "ann") -> Revision:
    text = f"name: T\nroles:\n  - {{name: Dev, goal: {goal}}}\n"
    return revision_of(parse_company(text), after=last, by=by, at=NOW)


@both
def test_numbers_rise_and_all_are_kept(kind: str, tmp_path: Path):
    async def play(one: Store, other: Store) -> None:
        here, there = Revisions(one), Revisions(other)
        assert await here.active() is None and await here.all() == []
        made: list[Revision] = []
        for goal in ("one", "two", "three"):
            active = await there.active()
            made.append(after(made[-1] if made else None, goal))
            await there.activate(made[-1], active)
        assert [each.number for each in made] == [1, 2, 3]
        seen = await here.active()
        assert seen is not None and seen.revision == made[-1]
        assert await here.all() == made

    run(kind, tmp_path, play)


@both
def test_of_two_who_apply_at_once_one_did_and_the_other_is_told(kind: str, tmp_path: Path):
    async def play(one: Store, other: Store) -> None:
        here, there = Revisions(one), Revisions(other)
        await here.activate(after(None, "one"), None)
        with pytest.raises(Conflict):
            await there.activate(after(None, "other"), None)
        active = await here.active()
        assert active is not None
        mine, theirs = after(active.revision, "mine"), after(active.revision, "theirs", "bob")
        await here.activate(mine, active)
        with pytest.raises(Conflict):
            await there.activate(theirs, active)
        assert [each.number for each in await there.all()] == [1, 2]
        assert (await there.all())[-1] == mine

    run(kind, tmp_path, play)


@both
def test_an_apply_that_died_half_way_leaves_nothing_to_see(kind: str, tmp_path: Path):
    """The active one was copied to the past, and nothing took its place."""

    async def play(one: Store, other: Store) -> None:
        here = Revisions(one)
        first = after(None, "one")
        await here.activate(first, None)
        active = await here.active()
        assert active is not None
        with pytest.raises(Conflict):
            await here.activate(after(first, "two"), type(active)(first, active.stored + 1000))
        assert await Revisions(other).all() == [first]
        await here.activate(after(first, "two"), active)
        assert [each.number for each in await here.all()] == [1, 2]

    run(kind, tmp_path, play)


@both
def test_what_a_later_build_wrote_is_unknown_and_not_absent(kind: str, tmp_path: Path):
    async def play(one: Store, other: Store) -> None:
        await one.put(CONFIG, "active", b'{"number": 1, "and": "no more"}')
        with pytest.raises(StoreUnavailable, match="later"):
            await Revisions(other).active()

    run(kind, tmp_path, play)


def test_the_oldest_are_forgotten(tmp_path: Path):
    async def play(one: Store, other: Store) -> None:
        here = Revisions(one)
        for number in range(KEPT + 5):
            active = await here.active()
            await here.activate(after(active and active.revision, f"g{number}"), active)
        kept = await here.all()
        assert kept[-1].number == KEPT + 5 and kept[0].number == 6
        assert len(kept) == KEPT

    run("twin", tmp_path, play)
