"""The twin under the queue's suite."""

from __future__ import annotations

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
    """The case passes, or raises. No wall time passes; equal seeds are equal runs."""

    async def main() -> None:
        harness = TwinQueues(broker)
        try:
            await case.run(harness)
        finally:
            await harness.up()
            await harness.close()

    run_virtual(main, seed=seed)
