"""Drawn scripts of the queue: what each handler saw, in order, with headroom."""

from __future__ import annotations

import pytest
from hypothesis import given, seed, settings

from tests.differential import queue_steps
from tests.differential.differ import Bench
from tests.differential.queue_play import Player
from tests.differential.test_port import FEW, MANY


@settings(FEW, max_examples=8)
@given(script=queue_steps.scripts(30))
def test_a_few_scripts(bench: Bench, script: queue_steps.Script) -> None:
    parted = bench.difference(Player, script)
    assert parted is None, parted


@pytest.mark.long
@pytest.mark.timeout(3600)
@seed(1)
@MANY
@given(script=queue_steps.scripts(30))
def test_many_scripts(bench: Bench, script: queue_steps.Script) -> None:
    parted = bench.difference(Player, script)
    assert parted is None, parted
