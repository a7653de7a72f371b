"""Drawn scripts of the port: publish, fetch, settle, recall, reclaim, restarts, time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.differential import port_steps
from tests.differential.differ import Bench
from tests.differential.port_play import Player

FEW = settings(
    max_examples=12,
    derandomize=True,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)
MANY = settings(FEW, max_examples=300, derandomize=False)


@FEW
@given(script=port_steps.scripts(30))
def test_a_few_scripts(bench: Bench, script: port_steps.Script) -> None:
    parted = bench.difference(Player, script)
    assert parted is None, parted


@pytest.mark.long
@pytest.mark.timeout(3600)
@seed(1)
@MANY
@given(script=port_steps.scripts(30))
def test_many_scripts(bench: Bench, script: port_steps.Script) -> None:
    parted = bench.difference(Player, script)
    assert parted is None, parted
