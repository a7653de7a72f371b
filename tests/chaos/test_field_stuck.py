"""C23 in a fleet: the body of a turn swallows its cancellation, and its seat goes to another node
meanwhile: because its own is cut off, or because it stops."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chaos.checks import Turn, judge
from tests.chaos.fleet import Fleet
from tests.chaos.processes import NodeProcess, until

WITHIN_S = 30.0
DRAIN_S = 3.0


class Stuck(Fleet):
    """Two nodes; `hold_on` has one of them run a body that goes on after its timeout."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, nodes=2, seats=2)

    def company_text(self, number: int = 0) -> str:
        return super().company_text(number).replace("timeout_s: 60", "timeout_s: 0.5")

    async def boot(self) -> None:
        for node in self.nodes:
            text = node.settings.read_text()
            node.settings.write_text(
                text.replace("drain_timeout_s: 10", f"drain_timeout_s: {DRAIN_S}")
            )
        await super().boot()

    async def hold_on(self) -> tuple[NodeProcess, NodeProcess, str]:
        """The node of the stuck seat, the other one, and the seat: A never ends there, and B
        of another conversation waits."""
        seat = self.seats[0]
        node = self.node(self.owners()[seat])
        other = next(one for one in self.nodes if one is not node)
        (node.folder / "stubborn").touch()
        await self.send(seat, "A", "stubborn")
        await until(lambda: self.says(node, seat, "stuck"), WITHIN_S, "the seat is stuck")
        await self.send(seat, "B", 0)
        return node, other, seat

    async def says(self, node: NodeProcess, seat: str, code: str) -> str:
        """What `why` says under that code; nothing where it says none."""
        rows = await node.call("why", handle=seat) or []
        return next((str(row["text"]) for row in rows if row["code"] == code), "")

    def of(self, key: str) -> list[Turn]:
        return [turn for turn in self.turns() if key in turn.keys]


async def _cut_off(folder: Path) -> None:
    async with Stuck(folder) as fleet:
        await fleet.boot()
        node, other, seat = await fleet.hold_on()
        link = fleet.links[fleet.nodes.index(node)]
        link.set("cut")
        await until(lambda: not set(fleet.waits_for()) & {"A", "B"}, WITHIN_S, "both are worked")
        assert [turn.node for turn in fleet.of("A")] == [node.name, other.name]
        assert fleet.of("A")[0].how == "open", "the body runs on where it was"
        link.set("open")
        await until(fleet.settled, WITHIN_S, "the node is back, and has its share")
        if fleet.owners()[seat] != node.name:
            await other.call("seat.move", handle=seat, node=node.name)
            await until(lambda: fleet.owners()[seat] == node.name, WITHIN_S, "it has it again")
        # Its next turn waits for the body that is still there, and says for which.
        await fleet.send(seat, "C", 0)
        said = await until(lambda: fleet.says(node, seat, "stuck"), WITHIN_S, "C waits")
        assert fleet.of("A")[0].turn in said and not fleet.of("C")
        (node.folder / "stubborn").unlink()
        assert await fleet.worked(WITHIN_S), fleet.waits_for()
        late, c = fleet.of("A")[0], fleet.of("C")[0]
        assert late.how == "end" and late.ended <= c.began and c.node == node.name
        verdicts = judge(fleet.recorded, fleet.turns())
        assert not verdicts.faults, verdicts.faults
        worked = {row.turn for row in fleet.recorded.completed}
        assert late.turn not in worked, "what it says so late counts for nothing"
        assert fleet.recorded.worked == {"A": 1, "B": 1, "C": 1}


@pytest.mark.field("C23")
def test_a_body_that_outlives_its_lease_counts_for_nothing(tmp_path: Path) -> None:
    asyncio.run(_cut_off(tmp_path))


async def _stopped(folder: Path) -> None:
    async with Stuck(folder) as fleet:
        await fleet.boot()
        node, other, seat = await fleet.hold_on()
        stuck = fleet.of("A")[0].turn
        # A move waits for the turn: while its body runs nobody else starts one.
        await node.call("seat.move", handle=seat, node=other.name)
        await until(lambda: fleet.says(node, seat, "moving"), WITHIN_S, "it is to be moved")
        assert stuck in await fleet.says(node, seat, "stuck")
        assert fleet.owners()[seat] == node.name and len(fleet.turns()) == 1
        # A stop does not: at its bound the mail is handed back, and the process leaves.
        assert await node.stop() == 0, node.words()
        assert await fleet.worked(WITHIN_S), fleet.waits_for()
        again = fleet.of("A")[1]
        assert (again.node, again.attempt, again.how) == (other.name, 2, "end")
        assert [turn.attempt for turn in fleet.of("B")] == [1], "it was never begun before"
        assert stuck in node.words() and "did not stop" in node.words()
        verdicts = judge(fleet.recorded, fleet.turns())
        assert not verdicts.faults, verdicts.faults
        assert fleet.recorded.worked == {"A": 1, "B": 1}


@pytest.mark.field("C23")
def test_a_stop_takes_a_seat_from_a_body_that_does_not_end_and_a_move_waits(
    tmp_path: Path,
) -> None:
    asyncio.run(_stopped(tmp_path))
