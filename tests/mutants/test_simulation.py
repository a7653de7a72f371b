"""M1 to M24, and the faults of promises beside them: each is planted, and seeds of the simulation
see it. In this process, and every time; the campaign runs them in processes of their own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.catalogue.cases import read_seeds
from tests.mutants.mutant import Mutant
from tests.simulation.planned import played
from tests.simulation.test_table import PROMISED

TIERS = ("simulation", "promises", "teeth")
SEEN = [mutant for mutant in MUTANTS.values() if mutant.tier in TIERS]


def _each() -> list[Any]:
    """The slow ones are for `make long`."""
    return [
        pytest.param(
            mutant,
            id=mutant.name,
            marks=[pytest.mark.long] if read_seeds(mutant.cases[0]).rare else [],
        )
        for mutant in SEEN
    ]


def test_each_of_the_twenty_four_is_planted_and_seen() -> None:
    those = [mutant.name for mutant in SEEN if mutant.tier == "simulation"]
    numbers = {name.partition("-")[0] for name in those}
    assert numbers == {f"m{number}" for number in range(1, 25)}


def test_every_promise_is_the_first_that_some_fault_breaks() -> None:
    """L5 and L6 are broken behind S14 or S17 only; their checkers have histories of their own."""
    named = {read_seeds(mutant.cases[0]).invariant for mutant in SEEN}
    assert named == set(PROMISED) - {"L5", "L6"}


@pytest.mark.parametrize("mutant", _each())
def test_a_seed_sees_it(mutant: Mutant) -> None:
    """The promise that it is to break is the first that breaks, on one of its seeds at least."""
    invariant, plan, numbers, minutes, _ = read_seeds(mutant.cases[0])
    patches = mutant.apply()
    try:
        runs = (played(plan, seed, minutes * 60.0).violations for seed in numbers)
        seen = any(broken and broken[0].invariant == invariant for broken in runs)
    finally:
        patches.undo()
    assert seen
    assert not patches.broken
