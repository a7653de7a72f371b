"""Cases: what a fetch brings, in which order, and how often it was brought before."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.delivery import BUDGET, Done, HandBack, Retry
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import (
    SOON_S,
    Harness,
    bodies,
    counts,
    now,
    pass_time,
    seat,
    settled_to,
    state,
)

CASES: Final = Table()


@CASES.case(34)
async def a_fetch_waits_for_the_first_message(harness: Harness) -> None:
    box = await seat(harness)
    fetch = asyncio.create_task(box.fetch(5))
    await pass_time(harness.quiet_s)
    assert not fetch.done()
    await box.send("a")
    assert bodies(await fetch) == ["a"]


@CASES.case(34, 35)
async def a_fetch_with_nothing_to_bring_is_empty_in_time(harness: Harness) -> None:
    box = await seat(harness)
    began = now()
    assert await box.fetch(5, 0.3) == []
    assert 0.2 <= now() - began <= 0.3 + max(harness.slack_s, 0.01)
    await box.send("a")
    assert bodies(await box.fetch()) == ["a"]


@CASES.case(34)
async def a_fetch_takes_what_is_there_at_once_and_no_more_than_asked(harness: Harness) -> None:
    box = await seat(harness)
    await box.send(*"abcde")
    began = now()
    assert bodies(await box.fetch(3)) == ["a", "b", "c"]
    assert bodies(await box.fetch(20)) == ["d", "e"]
    assert now() - began < SOON_S / 2, "a fetch sat out its wait with mail in its hands"
    await settled_to(box.client, box.mailbox, waiting=0, held=5)


@CASES.case(34)
async def nothing_is_pushed_ahead_of_a_fetch(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "b")
    await pass_time(harness.quiet_s)
    await settled_to(box.client, box.mailbox, waiting=2, held=0)
    await box.fetch(1)
    await settled_to(box.client, box.mailbox, waiting=1, held=1)


@CASES.case(42)
async def a_message_handed_out_is_nobody_else_s(harness: Harness) -> None:
    one = await seat(harness)
    two = await seat(harness, mailbox=one.mailbox)
    await one.send("a", "b")
    assert bodies(await one.fetch(1)) == ["a"]
    assert bodies(await two.fetch(5)) == ["b"]
    assert await two.fetch(5, harness.quiet_s) == []


@CASES.case(42, needs="virtual_time")
async def the_ack_window_is_thirty_minutes(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "b")
    await box.done((await box.take(2))[1:])
    await pass_time(1799)
    assert await box.fetch(5, 0.5) == []
    back = await box.fetch(5, 1)
    assert (bodies(back), counts(back)) == (["a"], [2])


@CASES.case(36)
async def done_takes_the_message_out(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "b")
    await box.done(await box.take(1))
    await settled_to(box.client, box.mailbox, waiting=1, held=0)
    await box.done(await box.take(1))
    await settled_to(box.client, box.mailbox, waiting=0, held=0)
    assert await box.fetch(5, harness.quiet_s) == []


@CASES.case(36)
async def a_partial_settle_leaves_the_rest_held(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "b", "c")
    a, b, c = await box.take(3)
    await box.done([b])
    await settled_to(box.client, box.mailbox, waiting=0, held=2)
    await box.client.settle([(c, HandBack()), (a, Done())])
    assert bodies(await box.fetch()) == ["c"]
    await settled_to(box.client, box.mailbox, waiting=0, held=1)


@CASES.case(36)
async def settling_nothing_is_nothing(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a")
    await box.client.settle([])
    await settled_to(box.client, box.mailbox, waiting=1, held=0)


@CASES.case(37, 38)
async def a_retry_goes_behind_waiting_mail_and_comes_back_on_time(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "b")
    began = now()
    await box.client.settle([(one, Retry(0.6)) for one in await box.take(1)])
    assert bodies(await box.fetch(5)) == ["b"]
    assert now() - began < 0.6, "the broker was too slow for this case to mean anything"
    back = await box.fetch(5)
    assert 0.59 <= now() - began <= 0.6 + max(harness.slack_s, 0.01)
    assert (bodies(back), counts(back)) == (["a"], [2])


@CASES.case(37)
async def a_retry_that_waits_is_in_flight(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a")
    await box.client.settle([(one, Retry(30.0)) for one in await box.take(1)])
    await settled_to(box.client, box.mailbox, waiting=0, held=1)
    assert await box.fetch(5, harness.quiet_s) == []
    await box.send("b")
    assert bodies(await box.fetch(5)) == ["b"]


@CASES.case(38)
async def a_retry_that_is_due_precedes_new_mail(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a")
    await box.client.settle([(one, Retry(0.1)) for one in await box.take(1)])
    await box.send("b")
    await pass_time(0.1 + max(harness.slack_s, 0.01))
    assert bodies(await box.take(2)) == ["a", "b"]


@CASES.case(38)
async def retries_come_back_in_the_order_they_are_due(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "b", "c")
    delays = {"a": 0.6, "b": 0.2, "c": 0.4}
    await box.client.settle([(one, Retry(delays[one.body.decode()])) for one in await box.take(3)])
    assert bodies(await box.take(3)) == ["b", "c", "a"]


@CASES.case(39, 40, 41)
async def a_hand_back_is_confirmed_at_the_head(harness: Harness) -> None:
    """A fetch that follows at once sees it first, every time: the settle was confirmed."""
    box = await seat(harness)
    rounds = [f"{n:02}" for n in range(40)]
    await box.send(*rounds, "last")
    for body in rounds:
        (first,) = await box.fetch(1)
        await box.client.settle([(first, HandBack())])
        (again,) = await box.fetch(1)
        assert (bodies([again]), again.count) == ([body], 2)
        assert again.position == first.position
        assert again.message_id == first.message_id
        await box.done([again])
    assert bodies(await box.fetch()) == ["last"]


@CASES.case(39)
async def hand_backs_return_first_in_by_arrival(harness: Harness) -> None:
    box = await seat(harness)
    await box.send(*"abcd", "later")
    taken = {one.body.decode(): one for one in await box.take(4)}
    await box.client.settle(
        [(taken["c"], HandBack()), (taken["b"], Done()), (taken["d"], HandBack())]
    )
    await box.client.settle([(taken["a"], HandBack())])
    assert bodies(await box.take(4)) == ["c", "d", "a", "later"]


@CASES.case(38, 39)
async def a_deferral_is_ahead_of_waiting_mail_and_a_failure_behind(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("failed", "deferred", "waiting")
    failed, deferred = await box.take(2)
    await box.client.settle([(failed, Retry(0.5)), (deferred, HandBack())])
    assert bodies(await box.take(3)) == ["deferred", "waiting", "failed"]


@CASES.case(40, 51)
async def the_count_rises_by_one_and_outlives_the_client(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a")
    for count in (1, 2, 3):
        (one,) = await box.fetch()
        assert one.count == count
        await box.client.settle([(one, HandBack())])
    await box.client.stop()
    peer = await seat(harness, mailbox=box.mailbox)
    (one,) = await peer.fetch()
    assert one.count == 4
    await peer.client.settle([(one, Retry(0.05))])
    assert counts(await peer.fetch()) == [5]


@CASES.case(43)
async def the_broker_bounds_deliveries_above_the_budget(harness: Harness) -> None:
    """Its limit is a backstop: past the client's budget, and not for ever."""
    box = await seat(harness)
    await box.send("poison", "next")
    reached = 0
    while True:
        (one,) = await box.fetch(1)
        if one.body == b"next":
            break
        assert one.count == reached + 1
        reached += 1
        assert reached <= 2 * BUDGET, "nothing bounds the deliveries"
        await box.client.settle([(one, HandBack())])
    assert reached > BUDGET
    assert await box.fetch(1, harness.quiet_s) == []
    found = await state(box.client, box.mailbox)
    assert found is not None and found.waiting == 0


@CASES.case(42)
async def an_ack_of_an_older_delivery_destroys_the_message(harness: Harness) -> None:
    """The broker fences nobody: admission is the caller's to check before it settles."""
    one = await seat(harness)
    await one.send("a", "b")
    (stale,) = await one.fetch(1)
    await one.client.settle([(stale, HandBack())])
    two = await seat(harness, mailbox=one.mailbox)
    (fresh,) = await two.fetch(1)
    assert (fresh.body, fresh.count) == (b"a", 2)
    await one.done([stale])
    await settled_to(two.client, two.mailbox, waiting=1, held=0)
    await two.client.settle([(fresh, HandBack())])
    assert bodies(await two.fetch(5)) == ["b"]


@CASES.case(6, 40, needs="restart")
async def mail_and_counts_outlive_the_broker(harness: Harness) -> None:
    """Of a broker that is killed two things may be lost: where a message stood in the
    redelivery queue (an owner reclaims), and the counts of its last moment."""
    box = await seat(harness)
    await box.send("a", "b")
    (one,) = await box.fetch(1)
    await box.client.settle([(one, HandBack())])
    await box.client.stop()
    await pass_time(harness.quiet_s)
    await harness.restart()
    back = await seat(harness, mailbox=box.mailbox)
    await back.client.reclaim(back.mailbox)
    taken = await back.take(2)
    seen = (bodies(taken), counts(taken))
    assert seen == (["a", "b"], [2, 1]), str(seen)
