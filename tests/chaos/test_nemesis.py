"""What plays the faults of a run judges by none that it played itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chaos.fleet import TTL_S, Fleet
from tests.chaos.nemesis import Nemesis
from tests.chaos.plan import Budget, Fault


@pytest.mark.timeout(120)
def test_a_node_that_is_stopped_in_the_middle_of_its_drain_goes_on_and_leaves(
    tmp_path: Path,
) -> None:
    """It stood still until the wait for its drain was over, and was called a surprise."""
    roll = Fault("roll", 0.0, victim=0, other=0, share=0.0, link="cut", failpoint="")

    async def main() -> Nemesis:
        async with Fleet(tmp_path, nodes=2, seats=4) as fleet:
            fleet.nodes[0].start("before_release:1=stop")
            fleet.nodes[1].start()
            for node in fleet.nodes:
                await node.up()
            nemesis = Nemesis(fleet, Budget(roll=1), TTL_S, failpoints=False)
            await nemesis.play([roll], lambda: True)
            return nemesis

    nemesis = asyncio.run(main())
    assert nemesis.surprises == []
    assert nemesis.where("stop") == {"before_release": 1} and nemesis.count("roll") == 1
