"""A seat that comes back while it is being retired, at each step of that: one of the two wins,
both know which, and the seat has its mailboxes in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import pytest

from actors.delivery import Mailbox
from crewlet import topics
from crewlet.broker.memory_client import MemoryClient
from crewlet.coordination.store import SEATS
from crewlet.events.revisions import SeatRetired
from crewlet.node.retire import SWEEP_S, Retirement
from crewlet.revisions import retirement
from crewlet.revisions.roster import WAIT_S
from tests.node.operated import Operated
from tests.node.revised import FIRST, Fleet
from tests.node.test_retirement_on_the_twin import boxes, left_behind, over_days, record

RETIRING: ContextVar[bool] = ContextVar("retiring", default=False)

VERBS = ("get", "list", "create", "update")


class Paused:
    """The retiring node stands still at the n-th of its steps after the mark: a question to the
    store, or a deletion; before it is done, or after. `steps` counts them."""

    def __init__(self, node: Operated, nth: int, seconds: float, *, after: bool) -> None:
        self.steps = 0
        self.begun = asyncio.Event()
        self._nth, self._seconds, self._after = nth, seconds, after
        broker = node.node.broker
        assert isinstance(broker, MemoryClient)
        self._wrap(broker, "delete", lambda mailbox, *_: topics.handle_of(mailbox.topic) == "ops")
        for verb in VERBS:
            self._wrap(broker.store, verb, lambda bucket, *_: bucket is SEATS)

    def _wrap(self, owner: Any, verb: str, counts: Callable[..., bool]) -> None:
        real = getattr(owner, verb)

        async def wrapped(*args: Any, **named: Any) -> Any:
            if not (counts(*args) and RETIRING.get()):
                return await real(*args, **named)
            if verb == "update" and not self.begun.is_set():
                found = await real(*args, **named)
                self.begun.set()  # the mark is made
                return found
            mine, self.steps = self.steps, self.steps + self.begun.is_set()
            still = self.begun.is_set() and mine == self._nth
            if still and not self._after:
                await asyncio.sleep(self._seconds)
            found = await real(*args, **named)
            if still and self._after:
                await asyncio.sleep(self._seconds)
            return found

        setattr(owner, verb, wrapped)


@pytest.fixture(autouse=True)
def half_an_hour_is_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a seat gets after it was seen to be absent: days are long to play."""
    monkeypatch.setattr(retirement, "GRACE", timedelta(seconds=2 * SWEEP_S))


@pytest.fixture(autouse=True)
def steps_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for the one seat that is being retired, apart from all looks at the record."""
    retire = Retirement._retire

    async def told(duty: Retirement, *args: Any) -> None:
        token = RETIRING.set(True)
        try:
            await retire(duty, *args)
        finally:
            RETIRING.reset(token)

    monkeypatch.setattr(Retirement, "_retire", told)


@pytest.mark.certifies(151, 153)
@pytest.mark.parametrize(
    ("seconds", "after"), [(5.0, True), (WAIT_S + 40, False)], ids=["for-a-while", "for-too-long"]
)
@pytest.mark.parametrize("nth", range(8))
def test_a_seat_that_is_back_at_any_step_is_whole_and_keeps_what_it_is_sent(
    nth: int, after: bool, seconds: float
) -> None:
    async def test(fleet: Fleet) -> None:
        one, two = fleet["n1"], fleet["n2"]
        await left_behind(fleet)
        paused = [Paused(each, nth, seconds, after=after) for each in (one, two)]
        waits = [asyncio.ensure_future(each.begun.wait()) for each in paused]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        other = two if paused[0].begun.is_set() else one
        await other.one("apply", text=FIRST)
        assert (await record(other, "ops")).state == "present"
        await other.one("seat.resume", handle="ops")
        await other.node.send("ops", "welcome back")
        await asyncio.sleep(2 * SWEEP_S)
        assert max(each.steps for each in paused) > 0
        assert topics.inbox_of("ops") in await boxes(one, "ops")
        assert (await record(one, "ops")).state == "present"
        assert [said for _, seat, said in fleet.worked if seat == "ops"][-1:] == ["welcome back"]
        for wait in waits:
            wait.cancel()

    over_days(test, "n1", "n2")


@pytest.mark.certifies(132, 153)
def test_a_deletion_that_lay_on_its_way_for_long_is_made_good_by_the_next_look() -> None:
    """Nothing at the broker stops it: it comes after the seat has its mailboxes again."""

    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet)
        broker = one.node.broker
        assert isinstance(broker, MemoryClient)
        delete, late = broker.delete, []

        async def slow(mailbox: Mailbox) -> bool:
            late.append(mailbox)
            await asyncio.sleep(1e6)
            return True

        broker.delete = slow  # type: ignore[method-assign]
        while not late:
            await asyncio.sleep(1)
        await one.one("apply", text=FIRST)
        await fleet.owned("ops")
        await delete(late[0])
        assert topics.inbox_of("ops") not in await boxes(one, "ops")
        await asyncio.sleep(2 * SWEEP_S)
        assert topics.inbox_of("ops") in await boxes(one, "ops")

    over_days(test)


@pytest.mark.certifies(149, 153, 155)
def test_a_retired_seat_is_on_the_record_once_whoever_ends_it() -> None:
    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet, mail=3)
        broker, store = one.node.broker, one.node.broker.store
        assert isinstance(broker, MemoryClient)
        update, refused = store.update, []

        async def dies(bucket: Any, key: str, value: bytes, revision: int) -> int:
            if bucket is SEATS and b'"retired"' in value and not refused:
                refused.append(key)
                raise asyncio.CancelledError  # the process ends before its last word
            return await update(bucket, key, value, revision)

        store.update = dies  # type: ignore[method-assign]
        await asyncio.sleep(6 * SWEEP_S)
        assert refused == ["ops"] and (await record(one, "ops")).state == "retired"
        said = await one.recorded("seat_retired")
        assert len({event.id for event in said}) == 1
        body = said[0].read(SeatRetired)
        assert (body.agent_role, body.mail) == ("ops", 3)
        assert (await record(one, "ops")).mail == 3
        assert "3 messages" in body.summary

    over_days(test)
