"""The queue's suite is run whole, over every broker that can be chosen."""

from __future__ import annotations

from typing import get_args

import pytest

from crewlet.broker.settings import Kind
from crewlet.testing.conformance import broker_cases, queue_cases, store_cases
from tests.conformance import test_queue_real, test_queue_twin
from tests.conformance.test_certified import RUN_AS

EVERYBODY = {case.name for case in queue_cases if case.needs != "virtual_time"}


@pytest.mark.certifies(2)
def test_every_kind_of_the_settings_is_certified() -> None:
    assert set(get_args(Kind)) == set(RUN_AS)
    assert set(RUN_AS.values()) == {"twin", *test_queue_real.LINES}


@pytest.mark.certifies(2)
def test_all_run_the_same_cases() -> None:
    """Half an hour of backoff passes on the twin only; all others are everybody's."""
    assert {one.id for one in test_queue_twin.CASES} == {case.name for case in queue_cases}
    ids = {one.id for one in test_queue_real.CASES}
    assert ids == {f"{broker}-{name}" for broker in test_queue_real.LINES for name in EVERYBODY}


def test_what_a_broker_does_not_keep_is_a_case_with_a_reason() -> None:
    for known in (test_queue_real.KNOWN, test_queue_twin.KNOWN):
        assert set(known) <= EVERYBODY
        assert all(len(reason) > 40 for reason in known.values())


def test_every_case_says_what_it_shows() -> None:
    names = [case.name for case in (*broker_cases, *store_cases, *queue_cases)]
    queue = [case.name for case in queue_cases]
    assert len(queue) == len(set(queue)) > 90
    assert len(names) > len(queue)
    assert [case.name for case in queue_cases if not (case.play.__doc__ or "").strip()] == []
    assert [case.name for case in queue_cases if not case.lines] == []
