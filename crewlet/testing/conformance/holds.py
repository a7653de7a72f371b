"""Cases: recall, release and reclaim. No message is lost or left to sit out its window."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from actors.delivery import Delivery, HandBack
from actors.ports import NotLive
from crewlet import topics
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import (
    SOON_S,
    Harness,
    Seat,
    bodies,
    counts,
    now,
    pass_time,
    seat,
    settled_to,
)
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()

ROUNDS: Final = 30
"""Races are run so often, each time a little further apart."""


@CASES.case(35)
async def a_recalled_fetch_ends_at_once_and_strands_nothing(harness: Harness) -> None:
    box = await seat(harness)
    fetch = asyncio.create_task(box.fetch())
    await pass_time(harness.quiet_s)
    began = now()
    await box.client.recall(box.attachment)
    assert await fetch == []
    assert now() - began < SOON_S / 2
    await box.send("a")
    await settled_to(box.client, box.mailbox, waiting=1, held=0)
    assert bodies(await box.fetch()) == ["a"]


@CASES.case(35)
async def a_recall_without_a_fetch_is_nothing(harness: Harness) -> None:
    box = await seat(harness)
    await box.client.recall(box.attachment)
    await box.send("a")
    assert bodies(await box.fetch()) == ["a"]


@CASES.case(35)
async def a_recall_that_races_mail_returns_what_was_sent(harness: Harness) -> None:
    """Each message comes exactly once, by the recalled fetch or by the next. JetStream may
    count a delivery that nobody saw for one it had just picked (docs/adr/0003)."""
    box = await seat(harness)
    wanted = [f"{n:02}" for n in range(ROUNDS)]
    seen: list[Delivery] = []
    for turns, body in enumerate(wanted):
        fetch = asyncio.create_task(box.fetch())
        await pass_time(0.002)
        sending = asyncio.create_task(box.send(body))
        await _turns(turns)
        await box.client.recall(box.attachment)
        await sending
        some = await fetch or await box.fetch()
        await box.done(some)
        seen += some
    assert bodies(seen) == wanted
    assert set(counts(seen)) <= {1, 2}
    await settled_to(box.client, box.mailbox, waiting=0, held=0)


@CASES.case(35, 42)
async def a_cancelled_fetch_strands_nothing(harness: Harness) -> None:
    """Cancelled while mail is on its way to it: the next fetch has the message at once."""
    box = await seat(harness)
    for turns in range(ROUNDS):
        fetch = asyncio.create_task(box.fetch())
        await pass_time(0.002)
        sending = asyncio.create_task(box.send(f"{turns:02}"))
        await _turns(turns)
        fetch.cancel()
        await sending
        some = await _result(fetch) or await box.take(1)
        assert bodies(some) == [f"{turns:02}"]
        assert counts(some) in ([1], [2])
        await box.done(some)
    await settled_to(box.client, box.mailbox, waiting=0, held=0)


@CASES.case(35)
async def a_release_ends_the_fetch_and_keeps_the_mail(harness: Harness) -> None:
    box = await seat(harness)
    fetch = asyncio.create_task(box.fetch())
    await pass_time(harness.quiet_s)
    await box.client.release(box.attachment)
    assert await fetch == []
    await box.client.release(box.attachment)
    async with raises(NotLive):
        await box.fetch(1, 0.05)
    await box.send("a", "b")
    await pass_time(harness.quiet_s)
    await settled_to(box.client, box.mailbox, waiting=2, held=0)
    back = await seat(harness, mailbox=box.mailbox)
    assert bodies(await back.take(2)) == ["a", "b"]


@CASES.case(35, 39)
async def a_release_that_races_mail_hands_it_back_in_order(harness: Harness) -> None:
    box = await seat(harness)
    for turns in range(ROUNDS):
        fetch = asyncio.create_task(box.fetch())
        await pass_time(0.002)
        wanted = [f"{turns:02}-a", f"{turns:02}-b"]
        sending = asyncio.create_task(box.send(*wanted))
        await _turns(turns)
        await box.client.release(box.attachment)
        some = list(await fetch)
        await sending
        box = Seat(box.client, box.mailbox, await box.client.attach(box.mailbox, epoch=turns))
        some += await box.take(2 - len(some))
        assert bodies(some) == wanted
        await box.done(some)
    await settled_to(box.client, box.mailbox, waiting=0, held=0)


@CASES.case(11, 35)
async def a_peer_s_release_and_stop_leave_the_others_served(harness: Harness) -> None:
    one = await seat(harness)
    two = await seat(harness, mailbox=one.mailbox)
    fetch = asyncio.create_task(two.fetch())
    await pass_time(harness.quiet_s)
    await one.client.release(one.attachment)
    await one.client.stop()
    await two.send("a")
    assert bodies(await fetch) == ["a"]


@CASES.case(11)
async def a_released_holder_may_still_settle(harness: Harness) -> None:
    """A turn that runs while its seat lets go settles what it was handed."""
    box = await seat(harness)
    await box.send("a", "b")
    a, b = await box.take(2)
    await box.client.release(box.attachment)
    await box.done([a])
    await box.client.settle([(b, HandBack())])
    back = await seat(harness, mailbox=box.mailbox)
    assert bodies(await back.fetch()) == ["b"]
    await settled_to(back.client, back.mailbox, waiting=0, held=1)


@CASES.case(42, 51)
async def reclaim_hands_back_in_order_and_with_counts(harness: Harness) -> None:
    dead = await seat(harness)
    await dead.send("a", "b", "c", "d")
    (a,) = await dead.fetch(1)
    await dead.client.settle([(a, HandBack())])
    held = await dead.take(3)
    assert bodies(held) == ["a", "b", "c"]
    await dead.done(held[1:2])
    await settled_to(dead.client, dead.mailbox, waiting=1, held=2)
    await dead.client.stop()
    heir = await seat(harness, mailbox=dead.mailbox)
    assert await heir.client.reclaim(heir.mailbox) == 2
    taken = await heir.take(3)
    assert (bodies(taken), counts(taken)) == (["a", "c", "d"], [3, 2, 1])


@CASES.case(42)
async def reclaim_of_no_mailbox_is_zero(harness: Harness) -> None:
    client, mailbox = await harness.client(), topics.inbox_of(harness.name())
    assert await client.reclaim(mailbox) == 0
    assert await client.ensure(mailbox) is True, "asking made the mailbox"


@CASES.case(42)
async def without_a_reclaim_a_dead_holder_s_mail_stays_held(harness: Harness) -> None:
    dead = await seat(harness)
    await dead.send("a")
    await dead.take(1)
    await dead.client.stop()
    heir = await seat(harness, mailbox=dead.mailbox)
    assert await heir.fetch(5, harness.quiet_s) == []
    assert await heir.client.reclaim(heir.mailbox) == 1
    assert bodies(await heir.fetch()) == ["a"]


@CASES.case(42)
async def reclaim_of_a_mailbox_that_owes_nothing_is_zero(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "b")
    assert await box.client.reclaim(box.mailbox) == 0
    await box.done(await box.take(1))
    await settled_to(box.client, box.mailbox, waiting=1, held=0)
    assert await box.client.reclaim(box.mailbox) == 0
    taken = await box.take(1)
    assert (bodies(taken), counts(taken)) == (["b"], [1])


async def _turns(number: int) -> None:
    """Let the loop turn so often: where exactly the race falls differs from round to round."""
    for _ in range(number):
        await asyncio.sleep(0)


async def _result(fetch: asyncio.Task[Sequence[Delivery]]) -> Sequence[Delivery]:
    try:
        return await fetch
    except asyncio.CancelledError:
        return []
