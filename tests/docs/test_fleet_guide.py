"""The placement that the guide shows runs, and does what the guide says of it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from actors.machines.placement import Board, Demand, decide
from actors.system import run_virtual
from crewlet.testing.strategies import boards
from tests.actors.fleet.fleet_bench import TIMING, Fleet

pytestmark = pytest.mark.certifies(282)

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "fleet.md"


def shown() -> dict[str, Any]:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    (code,) = [block for block in blocks if "Strategy" in block]
    names: dict[str, Any] = {}
    exec(compile(code, str(GUIDE), "exec"), names)
    return names


def test_the_placement_of_the_guide_fills_one_node_after_the_other() -> None:
    async def main() -> None:
        names = shown()
        names["SEATS"] = 2
        fleet = Fleet(5, demands={"s4": Demand("c")})
        await fleet.ready()
        for node in "cba":
            await fleet.join(node, strategy=names["strategy"])
        await asyncio.sleep(TIMING.sweep_s * 5)
        assert fleet.held() == {"a": ["s0", "s1"], "b": ["s2", "s3"], "c": ["s4"]}
        assert (await fleet.runtimes["a"].move("s0", "c")).refused == ""
        await asyncio.sleep(TIMING.sweep_s * 3)
        assert "s0" in fleet.held()["c"]
        await fleet.crash("b")
        await asyncio.sleep(TIMING.ttl_s + TIMING.sweep_s * 3)
        assert sorted(seat for seats in fleet.held().values() for seat in seats) == fleet.handles
        grants = len(fleet.table.grants)
        await asyncio.sleep(TIMING.sweep_s * 6)
        assert len(fleet.table.grants) == grants, "it never comes to rest"
        await fleet.stop()

    run_virtual(main, seed=1)


@settings(derandomize=True, max_examples=200, deadline=None, database=None)
@given(boards())
def test_the_gate_has_nothing_to_take_from_it(board: Board) -> None:
    strategy = shown()["strategy"]
    assert decide(strategy, board).take == strategy(board).take
