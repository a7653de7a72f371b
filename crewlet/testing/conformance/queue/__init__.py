"""The queue's own suite: every verb of `crewlet.queue.EventQueue`, over the broker under test.

A broker that passes `broker_cases` keeps mail; one that passes these as well may carry a
company. The author of one writes a `QueueHarness` and runs the table over it::

    from crewlet.testing.conformance import queue_cases

    @pytest.mark.parametrize("case", queue_cases, ids=lambda case: case.name)
    def test_mine(case):
        asyncio.run(case.run(MyHarness()))

A case with `needs` is for a harness that can do it: cut its clients off from the broker, or
pass time without waiting. Every other case is for all.
"""

from typing import Final

from crewlet.testing.conformance.queue import (
    asking,
    attachments,
    batches,
    core,
    drain,
    holds,
    lifecycle,
    listing,
    outcomes,
    reach,
    stopped_batches,
    streams,
)
from crewlet.testing.conformance.queue.bench import Bench
from crewlet.testing.conformance.queue.case import Need, QueueCase
from crewlet.testing.conformance.queue.harness import QueueHarness

CASES: Final[tuple[QueueCase, ...]] = (
    *core.CASES,
    *outcomes.CASES,
    *lifecycle.CASES,
    *holds.CASES,
    *drain.CASES,
    *batches.CASES,
    *stopped_batches.CASES,
    *attachments.CASES,
    *listing.CASES,
    *streams.CASES,
    *asking.CASES,
    *reach.CASES,
)

__all__ = ["CASES", "Bench", "Need", "QueueCase", "QueueHarness"]
