"""The twin passes both suites in virtual time, whatever the order of what is ready."""

from __future__ import annotations

import pytest

from crewlet.testing.conformance import Case, broker_cases, store_cases
from tests.conformance import twin_run

SEEDS = (0, 1, 2)


CASES = [
    pytest.param(case, id=case.name, marks=pytest.mark.certifies(2, 3, *case.lines))
    for case in (*broker_cases, *store_cases)
    if case.needs != "restart"
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case) -> None:
    for seed in SEEDS:
        twin_run.run(case, seed=seed)
