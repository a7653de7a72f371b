"""Runs a case over a fresh twin in virtual time."""

from __future__ import annotations

from crewlet.broker.memory import MemoryBroker
from crewlet.testing import run_virtual
from crewlet.testing.conformance import Case
from crewlet.testing.twin import TwinHarness


def run(case: Case, *, seed: int = 0, broker: MemoryBroker | None = None) -> None:
    """The case passes, or raises. No wall time passes; equal seeds are equal runs."""

    async def main() -> None:
        harness = TwinHarness(broker)
        try:
            await case.run(harness)
        finally:
            await harness.close()

    run_virtual(main, seed=seed)
