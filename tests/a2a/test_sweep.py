"""The upkeep of channels, and answers of turns that lost their seat: on a bench."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from actors.delivery import Fence, Letter
from actors.tenure import Session, Tenure
from crewlet import topics
from crewlet.a2a import wakes
from crewlet.a2a.channel import Channel, Owed, Reply, Told
from crewlet.a2a.colleagues import Colleagues
from crewlet.company import Company, parse_company
from crewlet.errors import StoreUnavailable
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.inbound.outbox import Finished
from tests.a2a.test_channel import OPEN
from tests.inbound.inbound_bench import START, Bench, letter, on_a_bench

COMPANY = """
name: Company T
roles: [{name: Dev, handle: dev}, {name: Qa, handle: qa}]
"""


class HandClock:
    """A wall clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return 0.0


class Office:
    """The colleagues of one node, and a tenure of the sweep that can end."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.clock = bench, HandClock()
        self.company: Company = parse_company(COMPANY)
        self.colleagues = Colleagues(
            lambda: self.company, bench.client, bench.queue, bench.ledger, self.clock
        )
        self.channels = self.colleagues.channels
        self.session = Session()
        self.session.valid_until = self.session.start_until = 1.0
        self.tenure = Tenure(Fence("worker:channels", 1, 1), self.session, 0)

    async def opened(self, id: str = OPEN.id) -> Channel:
        channel = Channel(
            id=id,
            asker="dev",
            target="qa",
            brief="fit?",
            opened_at=self.clock.at,
            trace=Trace.root(),
            depth=1,
            chain=("dev",),
            turn_id="turn-1",
            work_key="k",
        )
        found, is_new = await self.channels.open(channel)
        assert is_new
        return found

    async def keep(self, channel: Channel, text: str, epoch: int = 1) -> str:
        """A turn of qa ends so, and has not completed yet."""
        finished = Finished(
            handle="qa",
            turn_id=f"turn of {epoch}",
            letters=(asked(channel),),
            answer=text,
            trace=Trace.root(),
            at=self.clock.at,
            epoch=epoch,
        )
        return await self.colleagues.answering.keep(finished)

    async def complete(self, channel: Channel) -> None:
        id, at = wakes.request_id(channel.id), self.clock.at
        await self.bench.ledger.record("qa", [id], turn_id="turn", node="n1", at=at)

    async def look(self) -> None:
        await self.colleagues.sweep.look(self.tenure)

    async def state(self, id: str = OPEN.id) -> str:
        kept = await self.channels.get(id)
        return kept.channel.state if kept is not None else "gone"

    async def mail(self) -> list[Event]:
        return await self.bench.mail(topics.inbox_of("dev"))


def asked(channel: Channel) -> Letter:
    return letter(wakes.request(channel))


def at_an_office(play: Callable[[Office], Awaitable[None]]) -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure("dev", "qa")
        await play(Office(bench))

    on_a_bench(main)


@pytest.mark.certifies(215)
def test_what_is_not_in_the_ledger_is_not_sent_and_what_is_goes_out_once() -> None:
    async def play(office: Office) -> None:
        channel = await office.opened()
        assert await office.keep(channel, "of the turn that lost its seat", epoch=1) == ""
        await office.look()
        assert await office.state() == "answered", "its turn may never complete"
        assert await office.keep(channel, "yes", epoch=2) == ""
        assert "lost its seat" in await office.keep(channel, "late again", epoch=1)
        await office.complete(channel)
        for _ in range(3):
            await office.look()
            await office.colleagues.answering.send("qa", [asked(channel)])
        (message,) = await office.mail()
        assert (message.type, message.value("text", str, "")) == (types.A2A_MESSAGE, "yes")
        (closed,) = await office.bench.recorded(types.A2A_CHANNEL_CLOSED)
        assert closed.value("turn_id", str, "") == "turn of 2"

    at_an_office(play)


@pytest.mark.certifies(219)
def test_the_record_is_deleted_seven_days_after_the_end_and_not_before() -> None:
    async def play(office: Office) -> None:
        channel = await office.opened()
        await office.keep(channel, "yes")
        await office.complete(channel)
        await office.look()
        office.clock.at += timedelta(days=7) - timedelta(seconds=1)
        still_open = await office.opened("a2a-ffffffffffff")
        await office.look()
        assert await office.state() == "closed"
        office.clock.at += timedelta(seconds=1)
        await office.look()
        assert await office.state() == "gone"
        assert await office.state(still_open.id) == "open"

    at_an_office(play)


@pytest.mark.certifies(272)
def test_a_node_that_may_not_start_does_nothing() -> None:
    async def play(office: Office) -> None:
        await office.opened()
        office.clock.at += timedelta(hours=5)
        office.session.start_until = 0.0
        await office.look()
        assert await office.state() == "open"
        office.session.start_until = 1.0
        await office.look()
        assert await office.state() == "closed"

    at_an_office(play)


def test_an_answer_that_comes_while_the_sweep_gives_up_is_the_one_that_stands() -> None:
    async def play(office: Office) -> None:
        channel = await office.opened()
        (seen,) = await office.channels.all()
        office.clock.at += timedelta(hours=2)
        assert await office.keep(channel, "yes") == ""
        given_up = Reply(text="idle", at=office.clock.at, trace=Trace.root())
        assert await office.channels.advance_as_seen(seen, Owed(given_up)) is None
        await office.complete(channel)
        await office.look()
        (message,) = await office.mail()
        assert message.value("text", str, "") == "yes"

    at_an_office(play)


def test_an_unreadable_ledger_gives_nothing_up() -> None:
    async def play(office: Office) -> None:
        channel = await office.opened()
        await office.keep(channel, "yes")
        office.clock.at += timedelta(hours=2)

        async def unreadable(*_: object) -> bool:
            raise StoreUnavailable("the ledger does not answer")

        has, office.bench.ledger.has = office.bench.ledger.has, unreadable  # type: ignore[method-assign]
        await office.look()
        assert await office.state() == "answered"
        office.bench.ledger.has = has  # type: ignore[method-assign]
        await office.complete(channel)
        await office.look()
        assert [one.value("text", str, "") for one in await office.mail()] == ["yes"]

    at_an_office(play)


@pytest.mark.certifies(220)
def test_of_many_that_close_one_says_so_and_one_that_was_cut_off_is_made_up_for() -> None:
    async def play(office: Office) -> None:
        channel = await office.opened()
        await office.keep(channel, "yes")
        await office.complete(channel)
        _, won = await office.channels.advance(channel.id, Told(office.clock.at))
        _, again = await office.channels.advance(channel.id, Told(office.clock.at))
        assert (won, again) == (True, False)
        assert await office.bench.recorded(types.A2A_CHANNEL_CLOSED) == []
        await office.look()
        await office.look()
        assert len(await office.bench.recorded(types.A2A_CHANNEL_CLOSED)) == 1

    at_an_office(play)
