"""The suites that a broker passes before anything runs on it.

A broker's author writes a `Harness` and runs every case of both tables over it::

    from crewlet.testing.conformance import broker_cases, store_cases

    @pytest.mark.parametrize("case", [*broker_cases, *store_cases], ids=lambda case: case.name)
    def test_mine(case):
        asyncio.run(case.run(MyHarness()))

A case with `needs` is for a harness that can do it: restart the broker, or pass time without
waiting. Every other case is for all.

`queue_cases` are the second suite, of the queue over the broker: its harness is a
`QueueHarness` (crewlet.testing.conformance.queue).
"""

from crewlet.testing.conformance import (
    broadcasts,
    deliveries,
    holds,
    letters,
    lifecycle,
    mailboxes,
    peeks,
    questions,
    store_records,
    store_watches,
    stores,
    sweeps,
    takeovers,
)
from crewlet.testing.conformance.case import Case, Need
from crewlet.testing.conformance.harness import Harness
from crewlet.testing.conformance.queue import CASES as _QUEUE_CASES
from crewlet.testing.conformance.queue import QueueCase, QueueHarness

broker_cases: tuple[Case, ...] = (
    *mailboxes.CASES,
    *deliveries.CASES,
    *holds.CASES,
    *takeovers.CASES,
    *letters.CASES,
    *sweeps.CASES,
    *peeks.CASES,
    *broadcasts.CASES,
    *questions.CASES,
    *lifecycle.CASES,
)
"""The mailboxes of `actors.ports.Broker` and the face of `crewlet.broker.port`."""

store_cases: tuple[Case, ...] = (*stores.CASES, *store_watches.CASES, *store_records.CASES)
"""The coordination store of `crewlet.coordination.store.Store`."""

queue_cases: tuple[QueueCase, ...] = _QUEUE_CASES
"""The verbs and handlers of `crewlet.queue.EventQueue`."""

__all__ = [
    "Case",
    "Harness",
    "Need",
    "QueueCase",
    "QueueHarness",
    "broker_cases",
    "queue_cases",
    "store_cases",
]
