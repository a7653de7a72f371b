"""The spacing of an outage: what it honours, what it costs, and when it is another one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.delivery import BUDGET
from crewlet.inbound.outage import (
    FIRST_S,
    JITTER,
    LONGEST_ASKED_S,
    LONGEST_FREE_S,
    Outage,
    draw_of,
    failed,
    probed,
)

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
DAY_S = 24 * 3600.0


def begun(retry_after_s: float = 0.0, draw: float = 0.0) -> Outage:
    return failed(None, at=START, reason="503", retry_after_s=retry_after_s, draw=draw)


def again(known: Outage, retry_after_s: float = 0.0, draw: float = 0.0, later_s: float = 0.0):
    at = known.next_at + timedelta(seconds=later_s)
    return failed(known, at=at, reason="503", retry_after_s=retry_after_s, draw=draw)


def probe(known: Outage, retry_after_s: float = 0.0) -> Outage:
    return probed(known, at=known.next_at, reason="429", retry_after_s=retry_after_s, draw=0.0)


@pytest.mark.certifies(145)
def test_what_costs_deliveries_doubles_so_that_days_do_not_spend_the_budget() -> None:
    outage = begun()
    waits = [outage.wait_s]
    while outage.next_at < START + timedelta(days=7):
        outage = again(outage)
        waits.append(outage.wait_s)
    assert waits[:5] == [5, 10, 20, 40, 80]
    assert outage.spent < BUDGET - 5
    assert outage.since == START


def test_a_probe_that_costs_nothing_is_never_further_than_ten_minutes_away() -> None:
    outage, waits = begun(), []
    for _ in range(20):
        outage = probe(outage)
        waits.append(outage.wait_s)
    assert waits[:7] == [10, 20, 40, 80, 160, 320, 600]
    assert set(waits[6:]) == {LONGEST_FREE_S}
    assert (outage.spent, outage.probes, outage.reason, outage.since) == (1, 20, "429", START)


def test_a_probe_that_says_well_of_what_is_not_makes_the_spacing_no_shorter() -> None:
    """Its word is asked for once in each doubling, as if there were none."""
    outage, deliveries = begun(), 1
    while outage.next_at < START + timedelta(days=1):
        outage, deliveries = again(outage), deliveries + 1
        assert outage.wait_s == FIRST_S * 2 ** (deliveries - 1)
    assert deliveries < BUDGET


def test_deliveries_after_many_probes_begin_where_deliveries_were() -> None:
    outage = begun()
    for _ in range(50):
        outage = probe(outage)
    assert again(outage).wait_s == 10


@given(
    st.lists(
        st.tuples(st.booleans(), st.floats(0, 10**6), st.floats(0, 1)), min_size=1, max_size=60
    )
)
def test_it_never_comes_back_before_it_was_told_to(steps: list[tuple[bool, float, float]]) -> None:
    outage = begun()
    for free, asked_s, draw in steps:
        step = probed if free else failed
        outage = step(outage, at=outage.next_at, reason="r", retry_after_s=asked_s, draw=draw)
        least_s = max(FIRST_S, min(asked_s, LONGEST_ASKED_S))
        assert outage.wait_s >= least_s
        if free:
            assert outage.wait_s <= max(LONGEST_FREE_S, least_s) * (1 + JITTER)


def test_retry_after_is_honoured_with_and_without_a_probe() -> None:
    outage = begun(120)
    assert outage.wait_s == 120
    assert probe(outage, 300).wait_s == 300
    assert again(outage, 3.0).wait_s == 10, "never sooner than the spacing either"


def test_a_retry_after_without_sense_does_not_end_a_seat() -> None:
    assert begun(10**12).wait_s == LONGEST_ASKED_S
    assert begun(-5.0).wait_s == FIRST_S


def test_what_fails_long_after_it_was_to_be_asked_again_is_another_outage() -> None:
    outage = again(begun())
    soon, late = again(outage, later_s=3000), again(outage, later_s=4000)
    assert (soon.spent, soon.since) == (3, START)
    assert (late.spent, late.wait_s) == (1, FIRST_S)
    assert late.since == late.at > START


def test_outages_that_always_begin_anew_do_not_spend_the_budget_in_a_day_either() -> None:
    outage, deliveries = begun(), 1
    while outage.next_at < START + timedelta(days=1):
        outage, deliveries = again(outage, later_s=3601), deliveries + 1
    assert deliveries <= BUDGET


def test_the_jitter_spreads_seats_and_is_the_same_in_each_run() -> None:
    draws = [draw_of(f"seat-{n}", None) for n in range(100)]
    assert draws == [draw_of(f"seat-{n}", None) for n in range(100)]
    assert all(0 <= draw < 1 for draw in draws)
    assert len({round(draw, 1) for draw in draws}) > 8
    assert draw_of("dev", None) != draw_of("dev", begun())
    assert begun(draw=1.0).wait_s == FIRST_S * (1 + JITTER)
