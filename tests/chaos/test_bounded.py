"""A small chaos run in every test run. `make chaos` is the long one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.chaos.fleet import TTL_S
from tests.chaos.namespaces import Namespaces
from tests.chaos.plan import Budget
from tests.chaos.report import table
from tests.chaos.run import Wanted, play

SMALL = Wanted(
    seed=3,
    minutes=0.9,
    messages=1500,
    seats=9,
    budget=Budget(kill=6, stop=3, cut=3, broker_kill=1, move=2, roll=1),
)


@pytest.mark.timeout(240)
def test_nothing_is_lost_doubled_or_done_under_a_stale_fence(tmp_path: Path) -> None:
    outcome = asyncio.run(play(SMALL, tmp_path))
    print(table(outcome))
    assert not outcome.wrong, table(outcome)
    assert outcome.verdicts.sent > 300
    counts = {kind: sum(where.values()) for kind, where in outcome.faults.items()}
    assert counts["kill"] >= 3 and counts["stop"] >= 2 and counts["cut"] >= 2, counts
    # The bound of a takeover is TTL + 1 s; here faults overlap, and the machine may be busy.
    assert outcome.crash.get("p50", 0.0) < 2 * TTL_S + 2


REPLICATED = Wanted(
    seed=5,
    minutes=4.0,
    messages=1000,
    seats=6,
    servers=3,
    budget=Budget(kill=2, stop=1, cut=1, broker_kill=6, broker_stop=2, broker_cut=4),
)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_nothing_is_lost_when_one_server_of_three_after_the_other_goes(tmp_path: Path) -> None:
    """Durables in memory lost mail here, in each of three runs."""
    wanted = msgspec.structs.replace(REPLICATED, networks=Namespaces.possible())
    outcome = asyncio.run(play(wanted, tmp_path))
    assert not outcome.wrong, table(outcome)
    assert sum(outcome.faults["broker-kill"].values()) >= 4
