"""A seat on its way to another node is that node's to take, and for a while nobody else's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors.machines.placement import Board, Moves, fair_shares
from crewlet.testing import run_virtual
from tests.actors.fleet.fleet_bench import TIMING, Fleet


class Looked(Fleet):
    """Notes when each node looked at the whole."""

    def __init__(self, seats: int) -> None:
        super().__init__(seats)
        self.looks: dict[str, list[float]] = {}

    async def join(self, node: str, **given: Any) -> Any:
        looks = self.looks.setdefault(node, [])

        def strategy(board: Board) -> Moves:
            looks.append(asyncio.get_running_loop().time())
            return fair_shares(board)

        return await super().join(node, strategy=strategy, **given)

    async def at_rest(self) -> str:
        """Three nodes of a seat each, a moment after their last sweep; the seat of `a`."""
        await self.ready()
        for node in "abc":
            await self.join(node)
        await asyncio.sleep(4 * TIMING.sweep_s + 1.0)
        held = self.held()
        assert [len(seats) for seats in held.values()] == [1, 1, 1]
        return held["a"][0]


@pytest.mark.certifies(272)
def test_who_has_no_part_in_a_move_does_not_look_at_the_whole_for_it() -> None:
    async def main() -> None:
        fleet = Looked(3)
        seat = await fleet.at_rest()
        before = {node: len(looks) for node, looks in fleet.looks.items()}
        assert (await fleet.runtimes["a"].move(seat, "b")).refused == ""
        await asyncio.sleep(1.0)
        assert seat in fleet.held()["b"]
        assert {node: len(looks) for node, looks in fleet.looks.items()} == before
        await fleet.stop()

    run_virtual(main, seed=1)


@pytest.mark.certifies(272)
def test_a_seat_whose_heir_does_not_take_it_is_taken_by_another() -> None:
    async def main() -> None:
        fleet = Looked(3)
        seat = await fleet.at_rest()
        fleet.doors["b"].shut = True
        moved = asyncio.get_running_loop().time()
        assert (await fleet.runtimes["a"].move(seat, "b")).refused == ""
        await asyncio.sleep(TIMING.stand_back_s + 0.5)
        taken = [at for at, lease in fleet.table.grants if lease.resource == f"seat:{seat}"]
        assert TIMING.stand_back_s <= taken[-1] - moved < TIMING.stand_back_s + 0.2
        assert seat not in fleet.held()["b"]
        await fleet.stop()

    run_virtual(main, seed=1)


def timers_of_gateway(fleet: Fleet, node: str = "a") -> int:
    left = list(fleet.runtimes[node].tree())
    while left:
        one = left.pop()
        if one.kind == "Gateway":
            return one.timers
        left += one.children
    raise AssertionError("no gateway")


def test_what_was_to_be_looked_at_for_a_mailbox_ends_with_its_attachment() -> None:
    """Else a node that seats pass through has a timer of half a minute for each that it had."""

    async def main() -> None:
        fleet = Looked(3)
        seat = await fleet.at_rest()
        before = timers_of_gateway(fleet)
        for _ in range(5):
            assert (await fleet.runtimes["a"].move(seat, "b")).refused == ""
            await asyncio.sleep(0.2)
            assert (await fleet.runtimes["b"].move(seat, "a")).refused == ""
            await asyncio.sleep(0.2)
        # a look and a sweep for each of the mailboxes that it has
        assert timers_of_gateway(fleet) <= before + 6
        await fleet.stop()

    run_virtual(main, seed=1)
