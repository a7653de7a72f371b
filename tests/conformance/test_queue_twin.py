"""The queue over the twin, in virtual time, whatever the order of what is ready."""

from __future__ import annotations

import pytest

from crewlet.testing.conformance import QueueCase, queue_cases
from tests.conformance import queue_twin

SEEDS = (0, 1, 2)

KNOWN: dict[str, str] = {}
"""What the twin does not keep yet, and why. A case that passes again fails here."""


def _mark(case: QueueCase) -> pytest.MarkDecorator:
    if case.name in KNOWN:
        return pytest.mark.xfail(reason=KNOWN[case.name], strict=True)
    return pytest.mark.certifies(2, 3, *case.lines)


CASES = [pytest.param(case, id=case.name, marks=_mark(case)) for case in queue_cases]


@pytest.mark.parametrize("case", CASES)
def test_case(case: QueueCase) -> None:
    for seed in SEEDS:
        queue_twin.run(case, seed=seed)
