"""A node that hears of rows late asks for nothing that it must know to be lost."""

from __future__ import annotations

import asyncio

from actors.ports import Unavailable
from actors.system import run_virtual
from actors.tenure import Lease, Lost
from tests.actors.fleet.fleet_bench import Door, Fleet, LeaseTable


class Counting(LeaseTable):
    """Counts the writes that came too late."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[str] = []

    def write(self, lease: Lease) -> Lease:
        try:
            return super().write(lease)
        except Lost:
            self.lost.append(lease.resource)
            raise


def test_a_seat_that_was_let_go_of_is_not_claimed_by_a_row_that_is_old() -> None:
    """Its own row still says that the seat is here, and nobody works it: not a lost answer."""

    async def main() -> None:
        fleet = Fleet(2)
        fleet.table = table = Counting()
        await fleet.ready()
        runtime = await fleet.join("a")
        await fleet.join("b")
        await asyncio.sleep(30)
        (seat,) = fleet.held()["a"]
        door: Door = fleet.doors["a"]
        deaf = [heard for heard in table._heard if _is_of(heard, door)]
        for heard in deaf:  # what is written still arrives; what is told does not
            table._heard.remove(heard)
        await runtime.move(seat, "b")
        await asyncio.sleep(2)  # of which a tenth would have been enough to claim it again
        assert seat in fleet.held()["b"]
        assert table.lost == []
        for heard in deaf:
            table.listen(heard)
        await asyncio.sleep(20)
        assert [len(seats) for seats in fleet.held().values()] == [1, 1]
        await fleet.stop()

    run_virtual(main, seed=1)


def _is_of(heard: object, door: Door) -> bool:
    cells = getattr(heard, "__closure__", None) or ()
    return any(cell.cell_contents is door for cell in cells)


def test_a_seat_that_is_meant_for_a_node_that_does_not_take_it_is_anybodys_after_a_while() -> None:
    async def main() -> None:
        fleet = Fleet(2)
        await fleet.ready()
        runtime = await fleet.join("a")
        await fleet.join("b")
        await fleet.join("c")
        await asyncio.sleep(30)
        seat = fleet.held()["a"][0]
        fleet.doors["b"].write = _refuse  # type: ignore[method-assign]
        await runtime.move(seat, "b")
        await asyncio.sleep(1)
        assert all(seat not in seats for seats in fleet.held().values())
        await asyncio.sleep(3)
        assert any(seat in fleet.held().get(node, ()) for node in "ac")
        await fleet.stop()

    run_virtual(main, seed=1)


async def _refuse(lease: Lease) -> Lease:
    raise Unavailable("nothing of it arrives")
