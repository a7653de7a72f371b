"""A node that joins looks around before it takes what nobody has; what it is sent it takes."""

from __future__ import annotations

import asyncio

import pytest

from actors.system import run_virtual
from actors.tenure import SEAT
from tests.actors.fleet.fleet_bench import TIMING, Fleet


@pytest.mark.field("C34")
def test_a_seat_that_is_given_up_for_a_node_that_joins_is_taken_while_it_looks_around() -> None:
    async def main() -> None:
        fleet = Fleet(10)
        await fleet.ready()
        await fleet.join("a")
        joining = asyncio.ensure_future(fleet.join("b", settle_s=10.0))
        released: dict[str, float] = {}
        gaps: list[float] = []

        def heard(lease: object) -> None:
            now, name = asyncio.get_running_loop().time(), lease.resource  # type: ignore[attr-defined]
            if not name.startswith(SEAT):
                return
            if lease.released:  # type: ignore[attr-defined]
                released[name] = now
            elif name in released:
                gaps.append(now - released.pop(name))

        fleet.table.listen(heard)
        await joining
        await asyncio.sleep(TIMING.sweep_s * 4)
        assert [len(seats) for seats in fleet.held().values()] == [5, 5]
        assert len(gaps) == 5 and max(gaps) < 0.1, gaps
        await fleet.stop()

    run_virtual(main, seed=1)


def test_what_it_hears_while_it_looks_around_does_not_put_off_what_it_takes_then() -> None:
    async def main() -> None:
        fleet = Fleet(4)
        await fleet.ready()
        began = asyncio.get_running_loop().time()
        joining = asyncio.ensure_future(fleet.join("b", settle_s=1.0))
        await asyncio.sleep(0.3)
        await fleet.join("a", settle_s=1.0)  # its session is heard of meanwhile
        await joining
        taken = [at - began for at, lease in fleet.table.grants if lease.resource != "node:a"][1:]
        assert taken and min(taken) < 1.1, taken
        await fleet.stop()

    run_virtual(main, seed=1)
