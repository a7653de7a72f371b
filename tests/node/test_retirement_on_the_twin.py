"""Seats that the company has not any more, over days of virtual time: whole nodes on the twin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack

import pytest

from actors.delivery import Mailbox
from actors.holding import claim
from actors.machines.timing import Timing, scaled
from actors.system import run_virtual
from actors.tenure import SEAT
from crewlet import topics
from crewlet.broker.memory_client import MemoryClient
from crewlet.coordination.store import CONFIG, SEATS
from crewlet.errors import StoreUnavailable
from crewlet.node.retire import OWNER, SWEEP_S
from crewlet.revisions.retirement import SeatRecord
from crewlet.revisions.revision import revision_of
from crewlet.turn import Suspend, Turn
from tests.node.operated import Operated
from tests.node.revised import DEV, FIRST, OPS, Fleet, Handler, done, text

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S

WITHOUT = text(DEV)
"""ops is gone."""

SLOW: Timing = scaled(ttl_s=3600.0)
"""Days of renewals every five seconds would be all that is seen."""


def over_days(
    test: Callable[[Fleet], Coroutine[object, object, None]], *ids: str, handler: Handler = done
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            fleet = Fleet(stack, handler, lease=SLOW)
            for id in ids or ("n1",):
                await fleet.add(id)
            await fleet.owned("dev", "ops")
            await test(fleet)

    run_virtual(main)


async def record(node: Operated, handle: str) -> SeatRecord:
    known = await node.node.reconcile.roster.of(handle)
    assert known is not None
    return known.record


async def boxes(node: Operated, handle: str) -> set[Mailbox]:
    states = await node.node.broker.list(topics.AGENT)
    return {s.mailbox for s in states if topics.handle_of(s.mailbox.topic) == handle}


async def left_behind(fleet: Fleet, mail: int = 3) -> Operated:
    """ops is removed with mail in its inbox that nobody has worked."""
    one = next(iter(fleet.nodes.values()))
    await one.one("seat.pause", handle="ops")
    for n in range(mail):
        await one.node.send("ops", f"left {n}")
    await one.one("apply", text=WITHOUT)
    await asyncio.sleep(60)
    assert one.node.fleet.owner_of("ops") is None
    return one


@pytest.mark.certifies(148)
def test_a_seat_is_recorded_before_its_mailbox_is_made():
    async def test(fleet: Fleet) -> None:
        made: list[tuple[str, str]] = []
        one = fleet["n1"]
        broker = one.node.broker
        assert isinstance(broker, MemoryClient)
        ensure = broker.ensure

        async def noted(mailbox: Mailbox) -> bool:
            handle = topics.handle_of(mailbox.topic) or ""
            made.append((handle, (await record(one, handle)).state))
            return await ensure(mailbox)

        broker.ensure = noted  # type: ignore[method-assign]
        await one.one("apply", text=text(DEV, OPS, "  - {name: Qa, handle: qa}\n"))
        await fleet.owned("qa")
        assert ("qa", "present") in made

    over_days(test)


@pytest.mark.certifies(149)
def test_a_seat_is_retired_a_day_after_it_was_seen_to_be_absent_with_its_mail():
    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet)
        assert (await one.ask("why", handle="ops"))[0]["code"] == "removed"
        await asyncio.sleep(SWEEP_S)
        assert (await record(one, "ops")).state == "absent"
        await asyncio.sleep(DAY_S - SWEEP_S - 120)
        assert len(await boxes(one, "ops")) == 3, "not before the day is over"
        await asyncio.sleep(SWEEP_S + 120)
        assert await boxes(one, "ops") == set()
        last = await record(one, "ops")
        assert (last.state, last.mail) == ("retired", 3)
        (why,) = await one.ask("why", handle="ops")
        assert "3 messages went with it" in why["text"]
        assert one.node.fleet.owner_of("ops") is None, "its lease is free"
        assert len(await boxes(one, "dev")) == 3 and (await record(one, "dev")).state == "present"

    over_days(test)


@pytest.mark.certifies(149)
def test_the_runs_of_a_retired_seat_have_failed():
    async def suspends(turn: Turn) -> Suspend:
        return Suspend("run-1")

    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        await one.node.send("ops", "a long one")
        await asyncio.sleep(60)
        await one.one("apply", text=WITHOUT)
        await asyncio.sleep(DAY_S - SWEEP_S)
        assert not (await one.node.runs.get("ops", "run-1")).over
        await asyncio.sleep(2 * SWEEP_S + 60)
        run = await one.node.runs.get("ops", "run-1")
        assert (run.state.value, run.told) == ("failed", True)
        (told,) = await one.recorded("sandbox_run_failed")
        assert "has no agent ops any more" in told.value("text", str, "")
        assert await boxes(one, "ops") == set()

    over_days(test, handler=suspends)


@pytest.mark.certifies(151)
def test_a_seat_that_is_back_within_the_day_finds_its_mail():
    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet)
        await asyncio.sleep(DAY_S - HOUR_S)
        assert (await record(one, "ops")).state == "absent"
        await one.one("apply", text=FIRST)
        assert (await record(one, "ops")).state == "present", "on sight, not at the next sweep"
        await fleet.owned("ops")
        await one.one("seat.resume", handle="ops")
        await asyncio.sleep(60)
        assert [said for _, seat, said in fleet.worked if seat == "ops"] == [
            f"left {n}" for n in range(3)
        ]
        await one.one("apply", text=WITHOUT)
        await asyncio.sleep(DAY_S - SWEEP_S)
        assert len(await boxes(one, "ops")) == 3

    over_days(test)


@pytest.mark.certifies(149, 151)
def test_a_seat_that_was_retired_begins_anew():
    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet)
        await asyncio.sleep(DAY_S + 2 * SWEEP_S)
        assert await boxes(one, "ops") == set()
        await one.one("apply", text=FIRST)
        await fleet.owned("ops")
        await one.one("seat.resume", handle="ops")
        await one.node.send("ops", "hello again")
        await asyncio.sleep(60)
        assert [said for _, seat, said in fleet.worked if seat == "ops"] == ["hello again"]
        assert len(await boxes(one, "ops")) == 3

    over_days(test)


# -- unknown is never absent --------------------------------------------------------------


@pytest.mark.certifies(150)
def test_a_node_that_is_behind_stamps_and_retires_nothing():
    """It does the duty, and a later revision has the seat that it does not know of."""

    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet)
        await asyncio.sleep(SWEEP_S)
        node = one.node
        await node.reconcile.stop()
        active = await node.reconcile.revisions.active()
        company = node.reconcile.checked(FIRST, "later")
        assert active is not None
        revision = revision_of(company, after=active.revision, by="bob", at=node.clock.now())
        await node.reconcile.revisions.activate(revision, active)  # and nobody is told
        await asyncio.sleep(3 * DAY_S)
        assert len(await boxes(one, "ops")) == 3
        assert (await record(one, "ops")).state == "absent"

    over_days(test)


@pytest.mark.certifies(150)
@pytest.mark.parametrize("bucket", [CONFIG, SEATS], ids=lambda bucket: bucket.name)
def test_a_roster_that_cannot_be_read_stamps_and_retires_nothing(bucket: object):
    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet)
        await asyncio.sleep(SWEEP_S)
        await one.node.reconcile.stop()
        store = one.node.broker.store
        get, listed = store.get, store.list

        async def silent_get(asked: object, key: str) -> object:
            if asked is bucket:
                raise StoreUnavailable("it does not answer")
            return await get(asked, key)  # type: ignore[arg-type]

        async def silent_list(asked: object, prefix: str = "") -> object:
            if asked is bucket:
                raise StoreUnavailable("it does not answer")
            return await listed(asked, prefix)  # type: ignore[arg-type]

        store.get, store.list = silent_get, silent_list  # type: ignore[method-assign, assignment]
        await asyncio.sleep(3 * DAY_S)
        store.get, store.list = get, listed  # type: ignore[method-assign]
        assert len(await boxes(one, "ops")) == 3
        await asyncio.sleep(2 * SWEEP_S)
        assert await boxes(one, "ops") == set(), "its absence was seen a while ago"

    over_days(test)


def test_a_record_of_a_later_build_is_left_alone():
    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet)
        await one.node.broker.store.put(SEATS, "ops", b'{"state": "on leave"}')
        await asyncio.sleep(3 * DAY_S)
        assert len(await boxes(one, "ops")) == 3

    over_days(test)


# -- the broker's own list ----------------------------------------------------------------


@pytest.mark.certifies(152)
def test_a_mailbox_that_escaped_the_record_is_found_and_gets_its_day():
    async def test(fleet: Fleet) -> None:
        one = fleet["n1"]
        await one.node.broker.ensure(topics.inbox_of("ghost"))
        await asyncio.sleep(SWEEP_S + 60)
        assert (await record(one, "ghost")).state == "absent"
        await asyncio.sleep(DAY_S - SWEEP_S)
        assert await boxes(one, "ghost") == {topics.inbox_of("ghost")}
        await asyncio.sleep(2 * SWEEP_S)
        assert await boxes(one, "ghost") == set()

    over_days(test)


# -- who does it, and half way ------------------------------------------------------------


@pytest.mark.certifies(153)
def test_a_seat_that_somebody_still_works_is_not_retired():
    """A node that cannot take the revision goes on with the old one, and has the seat; the other
    has the duty."""

    async def test(fleet: Fleet) -> None:
        one, two = fleet["n1"], await fleet.add("n2", roles=("seats",))
        while (await fleet.owned("ops"))["ops"] != "n2":
            await one.ask("seat.move", handle="ops", node="n2")
            await asyncio.sleep(10)
        await two.node.reconcile.stop()
        await one.one("apply", text=WITHOUT)
        await asyncio.sleep(2 * DAY_S)
        assert one.node.fleet.owner_of("ops") == "n2"
        assert len(await boxes(one, "ops")) == 3

    over_days(test)


@pytest.mark.certifies(153)
def test_what_a_node_began_before_it_died_is_ended_by_the_next():
    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet)
        broker = one.node.broker
        assert isinstance(broker, MemoryClient)
        delete, tries = broker.delete, []

        async def dies(mailbox: Mailbox) -> bool:
            tries.append(mailbox)
            if len(tries) == 2:
                raise asyncio.CancelledError  # the process ends between two mailboxes
            return await delete(mailbox)

        broker.delete = dies  # type: ignore[method-assign]
        await asyncio.sleep(DAY_S - SWEEP_S)
        while len(tries) < 2:
            await asyncio.sleep(1)
        assert (await record(one, "ops")).state == "retiring"
        assert len(await boxes(one, "ops")) == 2
        await asyncio.sleep(2 * SWEEP_S)
        assert (await record(one, "ops")).state == "retired"
        assert await boxes(one, "ops") == set()

    over_days(test)


@pytest.mark.certifies(153)
def test_a_seat_that_is_back_while_it_is_retired_is_whole_afterwards():
    async def test(fleet: Fleet) -> None:
        one, two = fleet["n1"], fleet["n2"]
        await left_behind(fleet)
        for each in (one, two):
            slow_down(each, 5.0)
        await asyncio.sleep(DAY_S - SWEEP_S)
        while (await record(one, "ops")).state != "retiring":
            await asyncio.sleep(1)
        await two.one("apply", text=FIRST)
        await fleet.owned("ops")
        await asyncio.sleep(120)
        assert len(await boxes(one, "ops")) == 3
        assert (await record(one, "ops")).state == "present"
        await one.one("seat.resume", handle="ops")
        await two.node.send("ops", "welcome back")
        await asyncio.sleep(60)
        assert fleet.worked[-1][1:] == ("ops", "welcome back")

    over_days(test, "n1", "n2")


def slow_down(node: Operated, seconds: float) -> None:
    """Each mailbox takes so long to be deleted."""
    broker = node.node.broker
    assert isinstance(broker, MemoryClient)
    delete = broker.delete

    async def slow(mailbox: Mailbox) -> bool:
        await asyncio.sleep(seconds)
        return await delete(mailbox)

    broker.delete = slow  # type: ignore[method-assign]


def test_a_lease_that_was_left_behind_by_the_duty_is_given_back():
    """Its holder could not be heard when it let go."""

    async def test(fleet: Fleet) -> None:
        one = await left_behind(fleet)
        shared = one.node._shared
        session = shared.row_of("worker:retirement")
        assert session is not None
        row = shared.row_of(SEAT + "ops")
        await shared.write(
            claim("ops", row, owner=f"n1{OWNER}", node="n1", session=session.session)
        )
        await asyncio.sleep(1)
        assert one.node.fleet.owner_of("ops") == "n1"
        await asyncio.sleep(SWEEP_S)
        assert one.node.fleet.owner_of("ops") is None

    over_days(test)
