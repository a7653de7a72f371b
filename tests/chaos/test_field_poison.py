"""C16 in a fleet: a message that takes its process with it travels from node to node, and dies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chaos.checks import judge
from tests.chaos.fleet import Fleet

BUDGET = 25


async def _restart(fleet: Fleet, deaths: list[str]) -> None:
    """What a shell loop around each node does. The later lives die once more: between the dead
    letter and the end of its message."""
    while True:
        for node in fleet.nodes:
            if not node.running:
                deaths.append(node.name)
                late = len(deaths) >= BUDGET - 3
                node.start("after_dlq_before_term:1=kill" if late else "")
        await asyncio.sleep(0.05)


async def _play(folder: Path) -> None:
    async with Fleet(folder, seats=3) as fleet:
        await fleet.boot()
        deaths: list[str] = []
        loop = asyncio.create_task(_restart(fleet, deaths))
        try:
            await fleet.send("s00", "poison", "boom")
            for n in range(20):
                await fleet.send("s00", f"a{n}", 10)
                await fleet.send("s01", f"b{n}", 10)
                await asyncio.sleep(1.0)
            assert await fleet.worked(240), fleet.waits_for()
        finally:
            loop.cancel()
        turns = fleet.turns()
        verdicts = judge(fleet.recorded, turns)
        assert not verdicts.faults, verdicts.faults
        starts = [turn for turn in turns if "poison" in turn.keys]
        assert len(starts) == BUDGET, "as often as its budget says, and never again"
        assert len({turn.node for turn in starts}) > 1, "the seat travels"
        assert fleet.recorded.dead == {"poison": 1}
        assert verdicts.completed == 40
        for name in ("a", "b"):
            ended = [t for t in turns if t.how == "end" and t.keys[0].startswith(name)]
            assert len(ended) == 20


@pytest.mark.long  # 25 deaths, each taken over
@pytest.mark.timeout(400)
@pytest.mark.field("C16")
def test_poison_travels_and_dies_alone(tmp_path: Path) -> None:
    asyncio.run(_play(tmp_path))
