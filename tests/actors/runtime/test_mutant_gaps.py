"""Cases that planted faults asked for: no other case failed with them (tests/mutants)."""

from __future__ import annotations

import asyncio

import pytest
from runtime_bench import BOX, NAME, Bench, play

from actors.delivery import BatchOptions
from actors.machines import signals

LINGERING = BatchOptions(max_batch=20, linger_s=30.0)


@pytest.mark.certifies(83, 139)
def test_a_hold_in_the_middle_of_a_linger_gives_the_drain_back_at_once() -> None:
    """The consumer is collecting, not waiting for its first message, when the hold lands."""

    async def test(bench: Bench) -> None:
        bench.options = lambda: LINGERING
        await bench.attach()
        await bench.send("a", "b")
        await asyncio.sleep(1)
        description = await bench.runtime.describe(NAME)
        assert description is not None and description.boxes[0].state == "collecting"
        await bench.runtime.brake(NAME, BOX, signals.Hold("run"))
        await asyncio.sleep(1)
        description = await bench.runtime.describe(NAME)
        assert description is not None and description.boxes[0].held == 0, "nothing in hand"
        await asyncio.sleep(60)
        assert bench.seen == []
        await bench.runtime.brake(NAME, BOX, signals.Lift("run"))
        await asyncio.sleep(60)
        assert bench.seen == [("a", 2), ("b", 2)], "in order, for one delivery each"

    play(test)
