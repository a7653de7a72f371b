"""No broker can be chosen that the suites do not run over."""

from __future__ import annotations

from typing import get_args

import pytest

from crewlet.broker.settings import Kind
from crewlet.testing.conformance import broker_cases, store_cases
from tests.conformance import test_real, test_twin

RUN_AS = {"memory": "twin", "nats": "external", "embedded": "embedded"}
"""What a node's `stream.type` is called here."""


@pytest.mark.certifies(2)
def test_every_kind_of_the_settings_is_certified() -> None:
    assert set(get_args(Kind)) == set(RUN_AS)
    assert set(RUN_AS.values()) == {"twin", *test_real.LINES}


@pytest.mark.certifies(2)
def test_all_run_the_same_cases() -> None:
    """Restarts are the real brokers', virtual time is the twin's; all others are everybody's."""
    everybody = {case.name for case in (*broker_cases, *store_cases) if case.needs is None}
    twin = {one.id for one in test_twin.CASES}
    assert everybody <= twin
    for broker in test_real.LINES:
        ids = {one.id.removeprefix(f"{broker}-") for one in test_real.CASES}
        assert everybody <= ids


def test_names_are_distinct() -> None:
    names = [case.name for case in (*broker_cases, *store_cases)]
    assert len(names) == len(set(names))
