"""A duty is done by one node of the fleet at a time, and goes on elsewhere when that one dies."""

from __future__ import annotations

import asyncio
from typing import Any

from actors.duty import DutySpec
from actors.fleet import Opening
from actors.machines.placement import WORKERS, Demand
from actors.system import run_virtual
from actors.tenure import Tenure
from tests.actors.fleet.fleet_bench import TIMING, Fleet

SWEEP = "worker:sweep"


class Duties(Fleet):
    """Of one duty, done once a second; what was done, by whom."""

    def __init__(self) -> None:
        super().__init__(0)
        self.openings = [Opening(SWEEP, Demand(role=WORKERS))]
        self.done: list[tuple[float, str]] = []

    def _seat(self, node: str, handle: str) -> Any:
        async def run(tenure: Tenure) -> None:
            loop = asyncio.get_running_loop()
            while True:
                if tenure.may_start(loop.time()):
                    self.done.append((loop.time(), node))
                if len(self.done) == 3:
                    raise RuntimeError("a duty that breaks is begun again")
                await asyncio.sleep(1)

        return DutySpec(handle, run)


def test_a_duty_is_done_by_one_and_goes_on_at_another_when_it_dies() -> None:
    async def main() -> None:
        fleet = Duties()
        await fleet.ready()
        await fleet.join("a", roles=("workers",))
        await fleet.join("b", roles=("seats",))
        await fleet.join("c")
        await asyncio.sleep(10)
        assert {node for _, node in fleet.done} == {"a"}
        assert len(fleet.done) >= 5  # it broke once, and was begun again after five seconds
        await fleet.crash("a")
        before = len(fleet.done)
        await asyncio.sleep(TIMING.ttl_s + 2)
        after = fleet.done[before:]
        assert {node for _, node in after} == {"c"}  # b has no such role
        drained = await fleet.runtimes["c"].drain(5)
        assert drained.stuck == ()
        assert fleet.table.rows[SWEEP].released
        count = len(fleet.done)
        await asyncio.sleep(5)
        assert len(fleet.done) == count
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_node_that_is_cut_off_stops_its_duty_before_another_begins() -> None:
    async def main() -> None:
        fleet = Duties()
        await fleet.ready()
        await fleet.join("a")
        await fleet.join("b")
        await asyncio.sleep(10)
        fleet.doors["a"].shut = True
        await asyncio.sleep(TIMING.ttl_s + 5)
        by_a = [at for at, node in fleet.done if node == "a"]
        by_b = [at for at, node in fleet.done if node == "b"]
        assert by_a and by_b and max(by_a) < min(by_b)
        await fleet.stop()

    run_virtual(main, seed=1)
