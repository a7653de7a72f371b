"""The twin passes both suites in virtual time, whatever the order of what is ready."""

from __future__ import annotations

import pytest

from crewlet.testing.conformance import Case, broker_cases, store_cases
from tests.conformance import twin_run

SEEDS = (0, 1, 2)


def _cases() -> list[object]:
    cases = [case for case in (*broker_cases, *store_cases) if case.needs != "restart"]
    return [pytest.param(c, id=c.name, marks=pytest.mark.certifies(2, *c.lines)) for c in cases]


@pytest.mark.parametrize("case", _cases())
def test_case(case: Case) -> None:
    for seed in SEEDS:
        twin_run.run(case, seed=seed)


def test_names_are_distinct() -> None:
    names = [case.name for case in (*broker_cases, *store_cases)]
    assert len(names) == len(set(names))
