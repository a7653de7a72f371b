"""What becomes of a seat whose handler cannot work: held, asked for again, and told once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from inbound_bench import Bench, event, on_a_bench
from test_dispatch import Desk

from actors.delivery import Ack, Defer, Nak
from crewlet.company import Company
from crewlet.events import catalogue as types
from crewlet.events.interruptions import LlmUnavailable
from crewlet.inbound.outages import PROVIDER
from crewlet.turn import Outcome, Turn, Unavailable

AWAY = Unavailable("HTTP 503", retry_after_s=0.0)


class Provider:
    """What a handler needs. `free`: it can be asked without a turn."""

    def __init__(self, *, free: bool) -> None:
        self.away: Unavailable | None = AWAY
        self.answer: Outcome = Ack("done")
        self.asked: list[float] = []
        if free:
            self.available = self._available

    async def __call__(self, turn: Turn) -> Outcome:
        return self.away or self.answer

    async def _available(self) -> Unavailable | None:
        self.asked.append(asyncio.get_running_loop().time())
        return self.away


class Ward(Desk):
    """A desk whose handler is the provider itself."""

    def __init__(self, bench: Bench, provider: Provider) -> None:
        super().__init__(bench)
        self.provider = provider
        self.handler = provider  # type: ignore[method-assign]
        self.here = True
        self.silent = False

    async def hold(self, handle: str, name: str) -> bool:
        if self.silent:
            raise TimeoutError
        if (handle, name) not in self.held:
            self.held.append((handle, name))
        return self.here

    async def lift(self, handle: str, name: str) -> bool:
        if self.silent:
            raise TimeoutError
        if (handle, name) in self.held:
            self.held.remove((handle, name))
        return self.here

    @property
    def outages(self):  # type: ignore[no-untyped-def]
        return self.dispatch._turn._services.outages

    async def said(self) -> list[LlmUnavailable]:
        await self.bench.queue.flush(5.0)
        found = await self.bench.recorded(types.LLM_UNAVAILABLE)
        return [one.read(LlmUnavailable) for one in found]


def in_a_ward(play: Callable[[Ward], Awaitable[None]], *, free: bool = False) -> None:
    async def main(bench: Bench) -> None:
        ward = Ward(bench, Provider(free=free))
        await play(ward)
        await ward.outages.stop()

    on_a_bench(main)


@pytest.mark.certifies(145, 161)
def test_the_seat_is_held_before_its_mail_goes_back() -> None:
    async def play(ward: Ward) -> None:
        outcome = await ward.run(event("A"), event("B"))
        assert isinstance(outcome, Defer) and outcome.reason == "HTTP 503"
        assert 5.0 <= outcome.retry_after_s <= 5.5, "at the cost of one delivery"
        assert ward.held == [("dev", PROVIDER)]
        outage = ward.outages.holding("dev")
        assert (outage.reason, outage.spent) == ("HTTP 503", 1)
        (completed,) = await ward.completed()
        assert (completed.outcome, completed.failed) == ("unavailable", False)
        assert completed.reason == "HTTP 503"
        assert await ward.bench.ledger.worked("dev", ["A"]) == {}
        (said,) = await ward.said()
        assert (said.agent_role, said.reason) == ("dev", "HTTP 503")
        assert said.turn_id == completed.turn_id
        assert said.next_at == outage.next_at

    in_a_ward(play)


@pytest.mark.certifies(145, 170)
def test_without_a_probe_the_next_delivery_is_one() -> None:
    async def play(ward: Ward) -> None:
        for wait_s in (5, 10, 20):
            await ward.run(event("A"))
            await asyncio.sleep(wait_s - 0.1)
            assert ward.held == [("dev", PROVIDER)]
            await asyncio.sleep(wait_s * 0.1 + 0.2)
            assert ward.held == [] and ward.outages.holding("dev") is None
        ward.provider.away = None
        assert await ward.run(event("A")) == Ack("done")
        assert len(await ward.said()) == 1, "one outage is told once"

    in_a_ward(play)


@pytest.mark.certifies(145)
def test_a_probe_of_the_handlers_own_costs_no_delivery() -> None:
    async def play(ward: Ward) -> None:
        await ward.run(event("A"))
        await asyncio.sleep(40 * 60)
        assert ward.held == [("dev", PROVIDER)]
        assert len(ward.provider.asked) < 14
        ward.provider.away = None
        await asyncio.sleep(661)
        assert ward.held == []
        assert await ward.run(event("A"), count=2) == Ack("done")
        assert len(ward.worked) == 0 and len(await ward.started()) == 2

    in_a_ward(play, free=True)


def test_an_outage_that_is_over_is_followed_by_another() -> None:
    async def play(ward: Ward) -> None:
        await ward.run(event("A"))
        await asyncio.sleep(6)
        ward.provider.away = None
        await ward.run(event("A"))
        ward.provider.away = Unavailable("HTTP 429", retry_after_s=120)
        await ward.run(event("B"))
        first, second = await ward.said()
        assert (first.reason, second.reason) == ("HTTP 503", "HTTP 429")
        outage = ward.outages.holding("dev")
        assert outage.spent == 1 and 120 <= outage.wait_s <= 132

    in_a_ward(play)


@pytest.mark.parametrize("answer", [Ack("done"), Nak("no")])
def test_any_answer_of_the_provider_ends_it_and_a_deferral_does_not(answer: Outcome) -> None:
    async def play(ward: Ward) -> None:
        await ward.run(event("A"))
        ward.provider.away = None
        ward.provider.answer = Defer("later")
        await ward.run(event("A"))
        assert ward.outages.holding("dev") is not None
        ward.provider.answer = answer
        await ward.run(event("A"))
        assert ward.outages.holding("dev") is None
        assert ward.held == [], "also the hold that a person went round"

    in_a_ward(play)


@pytest.mark.certifies(146)
def test_a_hold_that_is_refused_leaves_the_deferral_to_brake() -> None:
    async def play(ward: Ward) -> None:
        ward.silent = True
        outcome = await ward.run(event("A"))
        assert isinstance(outcome, Defer) and outcome.retry_after_s >= 5.0
        assert ward.outages.holding("dev") is None
        ward.silent = False
        assert (await ward.run(event("A"))).retry_after_s >= 10.0
        assert ward.held == [("dev", PROVIDER)]

    in_a_ward(play)


def test_a_seat_that_does_not_hear_the_lift_is_told_again() -> None:
    async def play(ward: Ward) -> None:
        await ward.run(event("A"))
        ward.silent = True
        await asyncio.sleep(30)
        assert ward.held
        ward.silent = False
        await asyncio.sleep(2)
        assert ward.held == []

    in_a_ward(play)


def test_of_a_seat_that_has_moved_on_nobody_asks() -> None:
    async def play(ward: Ward) -> None:
        await ward.run(event("A"))
        ward.here = False
        await asyncio.sleep(3600)
        assert len(ward.provider.asked) == 1
        ward.here = True
        await ward.run(event("A"))
        assert ward.outages.holding("dev").spent == 1, "it starts freely where it comes to"

    in_a_ward(play, free=True)


def test_a_person_may_have_it_asked_now() -> None:
    async def play(ward: Ward) -> None:
        await ward.run(event("A"))
        ward.outages.try_now("dev")
        assert ward.outages.holding("dev") is None
        assert (await ward.run(event("A"))).retry_after_s >= 10.0, "and it is the same outage"
        assert len(await ward.said()) == 1

    in_a_ward(play)


@pytest.mark.certifies(145)
def test_a_company_that_has_changed_is_asked_at_once() -> None:
    async def play(ward: Ward) -> None:
        await ward.run(event("A"))
        await asyncio.sleep(3600)
        assert ward.held == [("dev", PROVIDER)]
        await ward.outages.revised(Company(name="Acme"))
        await asyncio.sleep(0.1)
        assert ward.held == [] and ward.outages.holding("dev") is None
        await ward.run(event("A"))
        assert ward.outages.holding("dev").spent == 1

    in_a_ward(play, free=True)


def test_a_probe_that_breaks_or_hangs_has_found_nobody() -> None:
    async def broken() -> Unavailable | None:
        raise RuntimeError("no route")

    async def hanging() -> Unavailable | None:
        await asyncio.sleep(10**9)
        return None

    async def play(ward: Ward) -> None:
        await ward.run(event("A"))
        ward.provider.available = broken
        await asyncio.sleep(6)
        assert ward.outages.holding("dev").reason == "its probe failed: RuntimeError: no route"
        ward.provider.available = hanging
        await asyncio.sleep(80)
        assert "did not answer within 60 s" in ward.outages.holding("dev").reason

    in_a_ward(play, free=True)
