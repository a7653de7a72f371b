"""What a seed decides, and how a plan is made smaller."""

from __future__ import annotations

from collections import Counter

import pytest

from actors.simulation.faults import KINDS, PROFILES, Decision, Knobs, Plan, plan
from actors.simulation.shrink import shrink
from actors.simulation.trouble import Trouble


@pytest.mark.parametrize("profile", PROFILES)
def test_a_seed_decides_the_same_always(profile):
    assert plan(3, profile) == plan(3, profile) != plan(4, profile)


def test_swarm_enables_some_kinds_only_and_all_of_them_sometimes():
    kinds = [set(Counter(one.kind for one in plan(seed).decisions)) for seed in range(200)]
    assert all(made < set(KINDS) for made in kinds)
    assert set().union(*kinds) == set(KINDS)


def test_decisions_stand_in_order_and_within_the_faults():
    for seed in range(50):
        times = [one.t for one in plan(seed, faults_s=60.0).decisions]
        assert times == sorted(times) and all(0 <= t <= 60 for t in times)


def test_every_kind_can_be_carried_out():
    assert all(hasattr(Trouble, f"_{kind}") for kind in KINDS)


def test_shrinking_finds_the_two_that_matter():
    decisions = tuple(Decision(float(n), "crash", n) for n in range(60))
    whole, runs = Plan(1, "swarm", Knobs(), decisions), []

    def fails(smaller: Plan) -> bool:
        runs.append(len(smaller.decisions))
        nodes = {one.node for one in smaller.decisions}
        return {7, 41} <= nodes

    small = shrink(whole, fails)
    assert [one.node for one in small.decisions] == [7, 41]
    assert small.seed == whole.seed and len(runs) < 200


def test_shrinking_ends_with_its_runs():
    decisions = tuple(Decision(float(n), "crash", n) for n in range(60))
    runs = []
    small = shrink(
        Plan(1, "swarm", Knobs(), decisions), lambda p: bool(runs.append(1)) or True, most_runs=3
    )
    assert len(runs) == 3 and len(small.decisions) < 60
