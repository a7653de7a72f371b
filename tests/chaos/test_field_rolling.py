"""C34 and C37 in a fleet: orderly restarts one after the other, and stops at any moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.checks import LeaseRow, judge, ownerless
from tests.chaos.fleet import Fleet
from tests.chaos.processes import NodeProcess, until

MOST_MOVES = 4
WITHOUT_OWNER_S = 1.0


class Steady:
    """A message a second for each seat, until told to stop."""

    def __init__(self, fleet: Fleet, ms: tuple[int, int]) -> None:
        self._fleet = fleet
        self._ms = ms
        self._rng = random.Random(34)
        self._on = True
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        number = 0
        while self._on:
            number += 1
            for seat in self._fleet.seats:
                await self._fleet.send(seat, f"{seat}-{number}", self._rng.randint(*self._ms))
                await asyncio.sleep(1.0 / len(self._fleet.seats))

    async def stop(self) -> None:
        self._on = False
        await self._task


async def _restart(fleet: Fleet, node: NodeProcess, *, ready: bool) -> None:
    assert await node.stop() == 0, node.words()
    node.start()
    if ready:
        await node.up()
        await until(fleet.settled, 30, "it has its share again")
    else:
        await asyncio.sleep(2.0)


def _moves(rows: Sequence[LeaseRow], began: dict[str, str]) -> dict[str, int]:
    """How often each seat changed its node from where it `began`."""
    holders = {seat: [node] for seat, node in began.items()}
    for row in rows:
        if not row.released and holders[row.seat][-1] != row.node:
            holders[row.seat].append(row.node)
    return {seat: len(its) - 1 for seat, its in holders.items()}


def _taken_while_leaving(fleet: Fleet) -> list[LeaseRow]:
    return [
        row
        for row in fleet.recorded.seat_rows
        if not row.released and fleet.left.get(row.owner, row.sequence) < row.sequence
    ]


async def _roll(folder: Path, *, ready: bool, comes_back: bool = True) -> None:
    async with Fleet(folder, seats=12) as fleet:
        await fleet.boot()
        began, first = fleet.owners(), len(fleet.recorded.seat_rows)
        load = Steady(fleet, (100, 600))
        for node in fleet.nodes[: None if comes_back else 2]:
            await _restart(fleet, node, ready=ready)
        if not comes_back:
            assert await fleet.nodes[2].stop() == 0
        for node in fleet.nodes[: None if comes_back else 2]:
            await node.up()
        await until(fleet.settled, 30, "the shares are even")
        await load.stop()
        assert await fleet.worked(30), fleet.waits_for()
        turns = fleet.turns()
        verdicts = judge(fleet.recorded, turns)
        assert not verdicts.faults, verdicts.faults
        assert not verdicts.zombies and not verdicts.again
        assert {turn.how for turn in turns} == {"end"}, "no turn was cut off"
        moves = _moves(fleet.recorded.seat_rows[first:], began)
        assert max(moves.values()) <= MOST_MOVES + (0 if ready else 2), moves
        assert not _taken_while_leaving(fleet)
        gaps = sorted(ownerless(fleet.recorded.seat_rows[first:]))
        assert gaps and gaps[-1] < WITHOUT_OWNER_S + (0 if ready else 1), gaps[-5:]


@pytest.mark.field("C34")
def test_a_rolling_restart_moves_seats_once_a_stop_and_once_back(tmp_path: Path) -> None:
    asyncio.run(_roll(tmp_path, ready=True))


@pytest.mark.long
@pytest.mark.field("C34")
def test_a_rolling_restart_that_waits_for_no_node(tmp_path: Path) -> None:
    """Where a start takes longer than two seconds two nodes are away at once, or come together."""
    asyncio.run(_roll(tmp_path, ready=False))


@pytest.mark.long
@pytest.mark.field("C34")
def test_a_roll_in_which_one_node_never_comes_back(tmp_path: Path) -> None:
    asyncio.run(_roll(tmp_path, ready=True, comes_back=False))


async def _stop_at_any_moment(folder: Path, rounds: int, *, far: bool) -> None:
    async with Fleet(folder, nodes=2, seats=4) as fleet:
        await fleet.boot()
        if far:
            for link in fleet.links:
                link.set("slow")
        rng = random.Random(37)
        load = Steady(fleet, (0, 2000))
        for number in range(rounds):
            node = fleet.nodes[number % 2]
            await asyncio.sleep(rng.uniform(0, 2))
            assert await node.stop(25) == 0, node.words()
            node.start()
            await node.up()
        await load.stop()
        assert await fleet.worked(60), fleet.waits_for()
        turns = fleet.turns()
        verdicts = judge(fleet.recorded, turns)
        assert not verdicts.faults, verdicts.faults
        ended = [key for turn in turns if turn.how == "end" for key in turn.keys]
        assert len(ended) == len(set(ended)) == verdicts.sent, "what ended is never run again"
        assert fleet.recorded.worked.keys() == set(ended), "and its completion is on record"
        assert "was destroyed" not in "".join(node.words() for node in fleet.nodes)


@pytest.mark.field("C37")
def test_a_turn_that_ends_while_its_node_stops_is_not_run_again(tmp_path: Path) -> None:
    asyncio.run(_stop_at_any_moment(tmp_path, 2, far=False))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.field("C37")
@pytest.mark.parametrize("far", [False, True], ids=["near", "a broker 300 ms away"])
def test_many_rounds_of_stops(tmp_path: Path, far: bool) -> None:
    asyncio.run(_stop_at_any_moment(tmp_path, 30, far=far))
