"""An operator who says something else before what he said first has come about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from actors.delivery import Ack, Outcome, Partition
from actors.runtime import SeatRuntime
from actors.system import run_virtual
from tests.actors.fleet.fleet_bench import TIMING, Fleet

pytestmark = pytest.mark.certifies(272)

TURN_S = 30.0

Said = Callable[[SeatRuntime, str], Coroutine[Any, Any, None]]


async def long(node: str, partition: Partition) -> Outcome:
    await asyncio.sleep(TURN_S)
    return Ack()


async def busy() -> tuple[Fleet, str]:
    """Three nodes of one seat each, at rest; the seat of `a` is in the middle of a turn."""
    fleet = Fleet(3, long)
    await fleet.ready()
    for node in "abc":
        await fleet.join(node)
    await asyncio.sleep(4 * TIMING.sweep_s + 1.0)
    (seat,) = fleet.held()["a"]
    await fleet.send(seat, "work")
    await asyncio.sleep(1.0)
    return fleet, seat


@pytest.mark.parametrize(("last", "first"), [("c", "b"), ("b", "b"), ("a", "b")])
def test_a_seat_goes_to_the_node_that_was_named_last(last: str, first: str) -> None:
    """Also back: its turn is waited for, and then it is taken up where it was."""

    async def main() -> None:
        fleet, seat = await busy()
        a = fleet.runtimes["a"]
        assert (await a.move(seat, first)).refused == ""
        await asyncio.sleep(5.0)
        assert seat in fleet.held()["a"], "its turn was not waited for"
        assert (await a.move(seat, last)).refused == ""
        assert "there are: a, b, c" in (await a.move(seat, "d")).refused
        await asyncio.sleep(TURN_S)
        assert seat in fleet.held()[last]
        assert fleet.completed == {"work": "a"}
        await asyncio.sleep(4 * TIMING.sweep_s)
        assert seat in fleet.held()[last], "what was ordered is not undone by the shares"
        await fleet.send(seat, "more")
        await asyncio.sleep(TURN_S + 1.0)
        assert fleet.completed["more"] == last
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_seat_that_is_where_it_should_be_is_not_moved() -> None:
    async def main() -> None:
        fleet, seat = await busy()
        assert "already" in (await fleet.runtimes["a"].move(seat, "a")).refused
        await asyncio.sleep(TURN_S)
        assert fleet.table.rows["seat:" + seat].node == "a"
        assert not fleet.table.rows["seat:" + seat].released
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_node_that_is_told_to_drain_while_it_takes_its_seats_takes_no_more() -> None:
    """Thousands stand in line to be taken: they are others', not its own for a moment each."""

    async def main() -> None:
        fleet = Fleet(60)
        await fleet.ready()
        fleet.openings, openings = [], fleet.openings
        a = await fleet.join("a")
        fleet.doors["a"].latency_s = 0.2
        fleet.openings = openings
        await asyncio.sleep(TIMING.sweep_s + 0.3)
        taken = len(fleet.table.grants)
        assert 1 < taken < 30, "the line was too short for this test"
        a.stand_aside(on=True)
        await asyncio.sleep(1.0)
        under_way = len(fleet.table.grants)
        await asyncio.sleep(TIMING.sweep_s * 2)
        assert len(fleet.table.grants) == under_way
        a.stand_aside(on=False)
        await asyncio.sleep(60.0)
        assert fleet.held() == {"a": sorted(fleet.handles)}
        await fleet.stop()

    run_virtual(main, seed=1)


def test_who_drains_for_good_is_not_called_back() -> None:
    """There is no way back from there: seats that it took again nobody would work."""

    async def main() -> None:
        fleet, _ = await busy()
        a = fleet.runtimes["a"]
        drain = asyncio.create_task(a.drain(TURN_S + 10))
        await asyncio.sleep(1.0)
        grants = len(fleet.table.grants)
        a.stand_aside(on=False)
        await asyncio.sleep(5.0)
        assert fleet.table.rows["node:a"].about.get("leaving") == "1"
        assert len(fleet.table.grants) == grants
        assert (await drain).cut == ()
        await asyncio.sleep(1.0)
        assert sorted(seat for seats in fleet.held().values() for seat in seats) == fleet.handles
        assert "a" not in fleet.held() and fleet.completed == {"work": "a"}
        await fleet.stop()

    run_virtual(main, seed=1)
