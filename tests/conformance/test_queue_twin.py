"""The queue over the twin, in virtual time, whatever the order of what is ready."""

from __future__ import annotations

import pytest

from crewlet.testing.conformance import QueueCase, queue_cases
from tests.conformance import queue_twin

SEEDS = (0, 1, 2)

CASES = [
    pytest.param(case, id=case.name, marks=pytest.mark.certifies(2, 3, *case.lines))
    for case in queue_cases
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: QueueCase) -> None:
    for seed in SEEDS:
        queue_twin.run(case, seed=seed)
