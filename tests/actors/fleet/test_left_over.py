"""A seat of a dead node that each of the others had left to another."""

from __future__ import annotations

import asyncio

import pytest

from actors.machines.placement import Board, Moves, fair_shares
from actors.outlook import LEFT_S
from crewlet.testing import run_virtual
from tests.actors.fleet.fleet_bench import TIMING, Fleet


@pytest.mark.certifies(272)
def test_it_is_looked_at_again_before_it_is_anybodys() -> None:
    """Twelve seats over five nodes of which one died: as `e` took its own, `d` counted anew, left a
    seat to it that it had not taken, and 2 s later both looked again. Here nobody takes any at
    the first look."""

    async def main() -> None:
        fleet, looked = Fleet(6), dict[str, list[float]]()

        def hesitant(board: Board) -> Moves:
            moves = fair_shares(board)
            if len(fleet.runtimes) < 3 and any(not place.holder for place in board.places):
                times = looked.setdefault(board.me, [])
                times.append(asyncio.get_running_loop().time())
                return moves if len(times) > 1 else Moves((), (), ())
            return moves

        await fleet.ready()
        for node in "abc":
            await fleet.join(node, strategy=hesitant)
        await asyncio.sleep(6 * TIMING.sweep_s)
        assert [len(seats) for seats in fleet.held().values()] == [2, 2, 2]
        looked.clear()
        granted = len(fleet.table.grants)
        await fleet.crash("a")
        await asyncio.sleep(TIMING.ttl_s + TIMING.stand_back_s + 1.0)
        first = min(times[0] for times in looked.values())
        assert [at - first < LEFT_S + 0.1 for at, _ in fleet.table.grants[granted:]] == [True] * 2
        await fleet.stop()

    run_virtual(main, seed=1)
