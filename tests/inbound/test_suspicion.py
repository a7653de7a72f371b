"""A provider that is away, or a message that it chokes on: what others could work tells."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inbound_bench import event
from test_outages import AWAY, Provider, Ward, in_a_ward

from actors.delivery import Ack, Defer, Nak
from crewlet.handlers import wrap
from crewlet.handlers.handler import provider_of
from crewlet.inbound.outages import PROVIDER
from crewlet.inbound.suspicion import MOST, PATIENCE, PROVEN, Suspicions
from crewlet.inbound.turn_run import CHOKES
from crewlet.turn import Outcome, Turn, Unavailable

pytestmark = pytest.mark.certifies(145, 161)


# -- the rule -------------------------------------------------------------------------


@given(st.lists(st.booleans(), max_size=60))
def test_a_message_is_to_blame_after_three_proofs_and_only_with_a_fresh_one(
    proofs: Sequence[bool],
) -> None:
    """`proofs`: whether somebody's turn got through between two failures of one message."""
    suspicions, proven = Suspicions(), 0
    assert suspicions.failed("dev", "p", "m", 0.0) == "provider"
    for nth, proof in enumerate(proofs, 1):
        if proof:
            suspicions.worked("ops", "p", ("other",), nth - 0.5)
        proven += proof
        blamed = suspicions.failed("dev", "p", "m", float(nth))
        if proof and proven >= PROVEN:
            assert blamed == "message"
        else:
            assert blamed == ("unclear" if (nth + 1) % PATIENCE == 0 else "provider")


def test_what_works_elsewhere_proves_nothing_and_a_seat_is_its_own_witness() -> None:
    suspicions = Suspicions()
    for nth in range(5):
        suspicions.worked("ops", "other", (), nth + 0.1)
        suspicions.worked("qa", "", (), nth + 0.2)
        assert suspicions.failed("dev", "", "m", float(nth)) == "provider"
    for nth in range(5, 5 + PROVEN):
        suspicions.worked("dev", "", ("another",), nth + 0.5)
        blamed = suspicions.failed("dev", "", "m", nth + 0.9)
    assert blamed == "message"


def test_a_message_that_was_worked_starts_anew_and_so_does_a_seat() -> None:
    suspicions = Suspicions()
    for nth in range(PATIENCE - 1):
        suspicions.failed("dev", "p", "m", float(nth))
    suspicions.worked("dev", "p", ("m",), 9.0)
    assert suspicions.failed("dev", "p", "m", 10.0) == "provider"
    for nth in range(PATIENCE - 2):
        suspicions.failed("dev", "p", "m", 11.0 + nth)
    suspicions.forget("dev")
    assert suspicions.failed("dev", "p", "m", 30.0) == "provider"


def test_what_is_remembered_is_bounded_and_the_oldest_goes() -> None:
    suspicions = Suspicions()
    for nth in range(PATIENCE - 1):
        suspicions.failed("dev", "p", "m", float(nth))
    for other in range(MOST):
        suspicions.failed("dev", "p", f"m{other}", 20.0)
    assert suspicions.failed("dev", "p", "m", 30.0) == "provider", "it is the first time again"


# -- in turns -------------------------------------------------------------------------


class Choking(Provider):
    """Well, but for the messages of some ids."""

    provider = "models"

    def __init__(self, *poison: str) -> None:
        super().__init__(free=False)
        self.poison = poison

    async def __call__(self, turn: Turn) -> Outcome:
        return AWAY if turn.events[0].id in self.poison else Ack("done")


def test_a_message_that_alone_fails_is_a_failure_of_the_mail_and_holds_nobody() -> None:
    async def play(ward: Ward) -> None:
        ward.handler = Choking("M")  # type: ignore[method-assign]
        for wait_s in (5, 10, 20):
            assert isinstance(await ward.run(event("M")), Defer)
            await asyncio.sleep(wait_s * 1.1 + 0.1)
            assert await ward.run(event(f"good {wait_s}")) == Ack("done")
        for n in range(5):
            assert await ward.run(event("M")) == Nak(f"{CHOKES}: HTTP 503")
            assert ward.held == [] and ward.outages.holding("dev") is None
            await asyncio.sleep(1)
            await ward.run(event(f"good {n}"))
        (*_, ended, _) = await ward.completed()
        assert ended.outcome == "nak" and ended.failed and CHOKES in ended.reason

    in_a_ward(play)


def test_in_an_outage_that_comes_later_it_is_not_to_blame() -> None:
    async def play(ward: Ward) -> None:
        ward.handler = Choking("M")  # type: ignore[method-assign]
        for n in range(PROVEN + 1):
            await ward.run(event("M"))
            await asyncio.sleep(60)
            await ward.run(event(f"good {n}"))
        assert isinstance(await ward.run(event("M")), Nak)
        ward.handler = Choking("M", "other")  # type: ignore[method-assign]
        assert isinstance(await ward.run(event("other")), Defer)
        assert isinstance(await ward.run(event("M")), Defer)
        assert ward.held == [("dev", PROVIDER)]

    in_a_ward(play)


def test_a_seat_without_witnesses_tries_its_other_mail_after_three_quarters_of_an_hour() -> None:
    async def play(ward: Ward) -> None:
        began = ward.bench.clock.monotonic()
        for _ in range(PATIENCE - 1):
            outcome = await ward.run(event("A"))
            assert isinstance(outcome, Defer)
            await asyncio.sleep(outcome.retry_after_s + 1)
        assert ward.bench.clock.monotonic() - began > 40 * 60
        assert await ward.run(event("A")) == Nak("HTTP 503")
        assert ward.held == [("dev", PROVIDER)], "an outage all the same, as far as is known"
        (*_, last) = await ward.completed()
        assert last.outcome == "unavailable"

    in_a_ward(play)


def test_a_handler_may_say_what_it_needs() -> None:
    async def plain(turn: Turn) -> Unavailable:
        return AWAY

    assert provider_of(wrap(Choking())) == "models"
    assert provider_of(wrap(plain)) == ""
