"""The twin under the queue's suite."""

from __future__ import annotations

from typing import Any
from unittest import mock

from actors import runtime
from actors.system import AsyncioSystemBase
from crewlet.broker.memory import MemoryBroker
from crewlet.testing import TwinHarness, run_virtual
from crewlet.testing.conformance.queue import QueueCase


class TwinQueues(TwinHarness):
    """`QueueHarness`: the twin's own switch is the outage."""

    async def down(self) -> None:
        self.broker.down = True

    async def up(self) -> None:
        self.broker.down = False


def run(case: QueueCase, *, seed: int = 0, broker: MemoryBroker | None = None) -> None:
    """The case passes, or raises. No wall time passes; equal seeds are equal runs, and every
    seed but 0 lets the actors that are ready run in an order of its own."""

    async def main() -> None:
        harness = TwinQueues(broker)
        try:
            await case.run(harness)
        finally:
            await harness.up()
            await harness.close()

    with mock.patch.object(runtime, "AsyncioSystemBase", _shuffled if seed else AsyncioSystemBase):
        run_virtual(main, seed=seed)


def _shuffled(**given: Any) -> AsyncioSystemBase:
    return AsyncioSystemBase(**{**given, "seed": None, "shuffle": True})
