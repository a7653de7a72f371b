"""A node that leaves: each of its seats is nobody's for a moment, however many there are."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from actors.delivery import Ack, Outcome, Partition
from actors.tenure import Lease
from crewlet.testing import run_virtual
from tests.actors.fleet.fleet_bench import TIMING, Fleet

MANY: Final = 300
WITHOUT_S: Final = 0.05
"""What L2 allows between the release of a seat and its successor at work."""


class Watched(Fleet):
    """Notes when each seat was let go of, and how long it then was without a node."""

    def note(self) -> None:
        self.released: dict[str, float] = {}
        self.gaps: dict[str, float] = {}
        self.nobodys = self.most = 0
        self.table.listen(self._heard)

    def _heard(self, lease: Lease) -> None:
        handle, now = lease.resource.removeprefix("seat:"), asyncio.get_running_loop().time()
        if handle not in self.handles:
            return
        if lease.released:
            self.released[handle] = now
            self.nobodys += 1
            self.most = max(self.most, self.nobodys)
        elif handle in self.released:
            self.gaps[handle] = now - self.released[handle]
            self.nobodys -= 1


@pytest.mark.certifies(272)
def test_each_of_many_seats_is_without_a_node_for_a_moment_only() -> None:
    async def main() -> None:
        fleet = Watched(MANY)
        await fleet.ready()
        a = await fleet.join("a")
        await fleet.join("b")
        await fleet.join("c")
        for node in "bc":
            fleet.doors[node].latency_s = 0.008  # a server that is some way away
        fleet.note()
        began = asyncio.get_running_loop().time()
        drained = await a.drain(30)
        assert drained.cut == () and drained.stuck == ()
        await asyncio.sleep(0.2)
        assert sorted(map(len, fleet.held().values())) == [MANY // 2, MANY // 2]
        assert len(fleet.gaps) >= MANY - 10 and max(fleet.gaps.values()) < WITHOUT_S
        assert fleet.most <= 64
        assert asyncio.get_running_loop().time() - began < 7
        await fleet.stop()

    run_virtual(main, seed=1)


@pytest.mark.certifies(272)
def test_mail_for_a_seat_of_a_node_that_leaves_is_worked_by_the_next_at_once() -> None:
    async def main() -> None:
        fleet = Watched(MANY)
        await fleet.ready()
        a = await fleet.join("a")
        await fleet.join("b")
        fleet.doors["b"].latency_s = 0.05  # so that most seats wait for their turn to go
        drain = asyncio.create_task(a.drain(30))
        await asyncio.sleep(0.01)
        last = fleet.held()["a"][-1]
        sent = asyncio.get_running_loop().time()
        await fleet.send(last, "now")
        while not fleet.completed:
            await asyncio.sleep(0.01)
        assert fleet.completed == {"now": "b"} and [turn[1] for turn in fleet.turns] == ["b"]
        assert asyncio.get_running_loop().time() - sent < 0.5
        assert fleet.held()["a"], "it went out of its turn"
        await drain
        await fleet.stop()

    run_virtual(main, seed=1)


def test_nobody_who_takes_them_holds_a_drain_up_to_its_bound() -> None:
    async def main() -> None:
        fleet = Fleet(100)
        await fleet.ready()
        a = await fleet.join("a")
        await fleet.join("b")
        fleet.doors["b"].shut = True  # its session stands, and it hears nothing
        began = asyncio.get_running_loop().time()
        drained = await a.drain(8)
        assert drained.stuck == () and asyncio.get_running_loop().time() - began < 7
        assert all(row.released for row in fleet.table.rows.values() if row.node == "a")
        await fleet.stop()

    run_virtual(main, seed=1)


def test_a_node_that_stays_after_all_works_what_it_still_has() -> None:
    async def main() -> None:
        async def run(node: str, partition: Partition) -> Outcome:
            return Ack()

        fleet = Fleet(MANY, run)
        await fleet.ready()
        a = await fleet.join("a")
        await fleet.join("b")
        fleet.doors["b"].latency_s = 0.05
        a.stand_aside(on=True)
        await asyncio.sleep(0.2)
        kept = fleet.held()["a"]
        assert len(kept) > MANY / 2
        a.stand_aside(on=False)
        await asyncio.sleep(0.1)
        await fleet.send(kept[-1], "still here")
        await asyncio.sleep(2 * TIMING.renew_s)
        assert fleet.completed == {"still here": "a"}
        await fleet.stop()

    run_virtual(main, seed=1)
