"""An embedder's own placement over real supervisors: obeyed, braked, and survived."""

from __future__ import annotations

import asyncio

import pytest

from actors.machines.placement import Board, GiveUp, Moves, Strategy, fair_shares, may_work
from actors.system import run_virtual
from tests.actors.fleet.fleet_bench import TIMING, Fleet

pytestmark = pytest.mark.certifies(282)


def packed(board: Board) -> Moves:
    """Every seat on the first node that may work it."""
    give_up, take = [GiveUp(handle, "gone") for handle in board.gone], []
    for place in board.places:
        home = next((m.id for m in board.members if may_work(m, place.demand)), "")
        if place.holder == board.me != home:
            give_up.append(GiveUp(place.handle, "balance", home))
        elif not place.holder and home == board.me:
            take.append(place.handle)
    return Moves(tuple(give_up), tuple(take))


def greedy(board: Board) -> Moves:
    """Everything is ours, whoever has it."""
    return Moves(take=tuple(place.handle for place in board.places))


def fragile(broken: list[bool]) -> Strategy:
    """It fails for as long as there is anything in `broken`."""

    def strategy(board: Board) -> Moves:
        if broken:
            raise ZeroDivisionError("no")
        return fair_shares(board)

    return strategy


def test_seats_go_where_an_embedder_says_and_two_a_sweep() -> None:
    async def main() -> None:
        fleet = Fleet(6)
        await fleet.ready()
        await fleet.join("b", strategy=packed)
        assert fleet.held() == {"b": fleet.handles}
        await fleet.join("a", strategy=packed)
        await asyncio.sleep(1.0)
        assert len(fleet.held()["a"]) in (2, 4)
        await asyncio.sleep(TIMING.sweep_s * 3)
        assert fleet.held() == {"a": fleet.handles}
        grants = len(fleet.table.grants)
        await asyncio.sleep(TIMING.ttl_s * 2)
        assert len(fleet.table.grants) == grants
        await fleet.crash("a")
        await asyncio.sleep(TIMING.ttl_s + 1)
        assert fleet.held() == {"b": fleet.handles}
        await fleet.stop()

    run_virtual(main, seed=1)


def test_one_that_wants_everything_takes_nothing_from_a_node_that_lives() -> None:
    async def main() -> None:
        fleet = Fleet(4)
        await fleet.ready()
        await fleet.join("a", strategy=greedy)
        await fleet.join("b", strategy=greedy)
        await asyncio.sleep(TIMING.sweep_s * 4)
        assert fleet.held() == {"a": fleet.handles}
        await fleet.send("s0", "hello")
        await asyncio.sleep(1)
        assert fleet.completed == {"hello": "a"}
        await fleet.stop()

    run_virtual(main, seed=1)


def test_one_that_gives_up_all_it_has_each_time_is_braked() -> None:
    def restless(board: Board) -> Moves:
        other = next((m.id for m in board.members if m.id != board.me), "")
        if not other:
            return fair_shares(board)
        mine = (place.handle for place in board.places if place.holder == board.me)
        return Moves(tuple(GiveUp(handle, "placement", other) for handle in mine))

    async def main() -> None:
        fleet = Fleet(8)
        await fleet.ready()
        await fleet.join("a", strategy=restless)
        await fleet.join("b", strategy=restless)
        await asyncio.sleep(1)
        grants, sweeps = len(fleet.table.grants), 6
        await asyncio.sleep(TIMING.sweep_s * sweeps)
        # Two a sweep of each of them, and not a seat more.
        assert len(fleet.table.grants) - grants <= 2 * 2 * (sweeps + 1)
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_start_does_not_wait_for_one_that_fails() -> None:
    async def main() -> None:
        broken, fleet = [True], Fleet(4)
        await fleet.ready()
        async with asyncio.timeout(TIMING.sweep_s):
            await fleet.join("a", strategy=fragile(broken))
        assert fleet.held() == {}
        broken.clear()
        await asyncio.sleep(TIMING.sweep_s + 1)
        assert fleet.held() == {"a": fleet.handles}
        await fleet.stop()

    run_virtual(main, seed=1)


def test_one_that_fails_moves_nothing_and_the_node_outlives_it() -> None:
    async def main() -> None:
        broken, fleet = list[bool](), Fleet(4)
        await fleet.ready()
        a = await fleet.join("a", strategy=fragile(broken))
        broken.append(True)
        await fleet.join("b")
        await asyncio.sleep(TIMING.sweep_s * 4)
        assert fleet.held() == {"a": fleet.handles}
        await fleet.send("s0", "hello")
        await asyncio.sleep(1)
        assert fleet.completed == {"hello": "a"}
        broken.clear()
        await asyncio.sleep(TIMING.sweep_s * 3)
        assert [len(seats) for seats in fleet.held().values()] == [2, 2]
        broken.append(True)
        drained = await a.drain(5)
        assert drained.stuck == () and drained.cut == ()
        await asyncio.sleep(TIMING.stand_back_s + 1)
        assert fleet.held() == {"b": fleet.handles}
        await fleet.stop()

    run_virtual(main, seed=1)
