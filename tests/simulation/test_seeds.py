"""Seeds on which planted faults are seen (tests/mutants): without one they keep every promise."""

from __future__ import annotations

import functools
import os
from typing import Any

import pytest

from actors.simulation.checkers import Violation
from tests.mutants.catalogue import MUTANTS
from tests.mutants.catalogue.cases import SEEDS, read_seeds
from tests.mutants.mutant import VARIABLE
from tests.simulation.planned import played

CASES = sorted(
    {
        case.removeprefix(f"{SEEDS}[").removesuffix("]")
        for mutant in MUTANTS.values()
        for case in mutant.cases
        if case.startswith(SEEDS)
    }
)


@functools.cache
def broken(plan: str, seed: int, minutes: int) -> Violation | None:
    """What the seed breaks first."""
    return next(iter(played(plan, seed, minutes * 60.0).violations), None)


def _each() -> list[Any]:
    return [
        pytest.param(case, marks=[pytest.mark.long] if read_seeds(case).rare else [])
        for case in CASES
    ]


@pytest.mark.parametrize("case", _each())
def test_keeps(case: str) -> None:
    """The promise that the case names. With a fault planted, another one that is broken before
    it shows nothing."""
    invariant, plan, numbers, minutes, _ = read_seeds(case)
    others: dict[int, Violation] = {}
    for seed in numbers:
        found = broken(plan, seed, minutes)
        if found is not None:
            assert found.invariant != invariant, f"{invariant} on seed {seed}: {found.text}"
            others[seed] = found
    if others and os.environ.get(VARIABLE):
        pytest.skip(f"others are broken: {others}")
    assert not others
