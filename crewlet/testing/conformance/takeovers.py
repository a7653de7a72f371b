"""Cases: a holder that was fenced lets go without a word, and its successor takes what it held."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.delivery import HandBack, Retry
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


@CASES.case(280)
async def an_abandoned_fetch_ends_empty_and_swallows_nothing(harness: Harness) -> None:
    box = await seat(harness)
    fetch = asyncio.create_task(box.fetch())
    await pass_time(harness.quiet_s)
    began = now()
    await box.client.abandon(box.attachment)
    assert await fetch == []
    assert now() - began < SOON_S / 2
    await box.client.abandon(box.attachment)
    async with raises(NotLive):
        await box.fetch(1, 0.05)
    await box.send("a", "b")
    await pass_time(harness.quiet_s)
    await settled_to(box.client, box.mailbox, waiting=2, held=0)
    heir = await seat(harness, mailbox=box.mailbox)
    taken = await heir.take(2)
    assert (bodies(taken), counts(taken)) == (["a", "b"], [1, 1])


@CASES.case(280)
async def an_abandon_that_races_mail_leaves_it_to_the_successor(harness: Harness) -> None:
    """Whatever had been sent to the fetch stays out until it is reclaimed: it is never handed
    back, and never lost."""
    box = await seat(harness)
    for turns in range(ROUNDS):
        fetch = asyncio.create_task(box.fetch())
        await pass_time(0.002)
        wanted = [f"{turns:02}-a", f"{turns:02}-b"]
        sending = asyncio.create_task(box.send(*wanted))
        for _ in range(turns):
            await asyncio.sleep(0)
        await box.client.abandon(box.attachment)
        some = await fetch
        await sending
        box = Seat(box.client, box.mailbox, await box.client.attach(box.mailbox, epoch=turns + 2))
        if some:  # it had answered before
            await box.done(some)
        await box.client.reclaim(box.mailbox)
        rest = await box.take(2 - len(some))
        assert bodies([*some, *rest]) == wanted
        await box.done(rest)
        await settled_to(box.client, box.mailbox, waiting=0, held=0)


@CASES.case(280)
async def what_an_abandoned_holder_held_is_its_successor_s(harness: Harness) -> None:
    """Not by the abandon, nor by the release and the stop that follow it."""
    fenced = await seat(harness)
    await fenced.send("a", "b", "c")
    await fenced.take(2)
    await fenced.client.abandon(fenced.attachment)
    await fenced.client.release(fenced.attachment)
    await fenced.client.stop()
    heir = await seat(harness, mailbox=fenced.mailbox)
    await settled_to(heir.client, heir.mailbox, waiting=1, held=2)
    taken = await heir.take(1)
    assert (bodies(taken), counts(taken)) == (["c"], [1])
    assert await heir.client.reclaim(heir.mailbox, keep={taken[0].position}) == 2
    back = await heir.take(2)
    assert (bodies(back), counts(back)) == (["a", "b"], [2, 2])


@CASES.case(280)
async def a_cancelled_fetch_of_an_abandoned_holder_hands_nothing_back(harness: Harness) -> None:
    """Its task ends with its holder, before or after the abandon, with mail on the way."""
    box = await seat(harness)
    for turns in range(ROUNDS):
        fetch = asyncio.create_task(box.fetch())
        await pass_time(0.002)
        sending = asyncio.create_task(box.send(f"{turns:02}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        abandon = asyncio.create_task(box.client.abandon(box.attachment))
        if turns % 2:
            await asyncio.sleep(0)
        fetch.cancel()
        await asyncio.wait({fetch, abandon})
        await sending
        some = [] if fetch.cancelled() else await fetch
        box = Seat(box.client, box.mailbox, await box.client.attach(box.mailbox, epoch=turns + 2))
        if not some:
            await box.client.reclaim(box.mailbox)
            some = await box.take(1)
        assert bodies(some) == [f"{turns:02}"]
        await box.done(some)
        await settled_to(box.client, box.mailbox, waiting=0, held=0)


@CASES.case(280, needs="restart")
async def a_hand_back_is_not_said_again_after_an_abandon(harness: Harness) -> None:
    """A killed broker forgets the order of what was handed back. Its client says it again, as
    long as the mailbox is its own; the control has it back without a reclaim."""
    fenced, owner = await seat(harness), await seat(harness)
    for box in (fenced, owner):
        await box.send("a")
        (a,) = await box.take(1)
        await box.client.settle([(a, HandBack())])
    await fenced.client.abandon(fenced.attachment)
    await harness.restart()
    assert bodies(await owner.take(1)) == ["a"]
    heir = await seat(harness, mailbox=fenced.mailbox)
    assert await heir.fetch(5, harness.quiet_s) == []
    assert await heir.client.reclaim(heir.mailbox) == 1
    assert bodies(await heir.fetch()) == ["a"]


@CASES.case(281)
async def reclaim_leaves_alone_what_the_caller_keeps(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "b", "c")
    taken = await box.take(3)
    assert await box.client.reclaim(box.mailbox, keep={taken[1].position}) == 2
    back = await box.take(2)
    assert (bodies(back), counts(back)) == (["a", "c"], [2, 2])
    assert await box.fetch(5, harness.quiet_s) == []
    await box.done([*back, taken[1]])
    await settled_to(box.client, box.mailbox, waiting=0, held=0)


@CASES.case(281)
async def outstanding_are_the_positions_that_are_out(harness: Harness) -> None:
    box = await seat(harness)
    look = box.client.outstanding
    assert await look(box.mailbox) == frozenset()
    await box.send("a", "b", "c", "d")
    assert await look(box.mailbox) == frozenset(), "what waits was never handed out"
    a, b, c = await box.take(3)
    assert await look(box.mailbox) == {a.position, b.position, c.position}
    await box.client.settle([(b, Retry(30.0)), (c, HandBack())])
    await box.done([a])
    await settled_to(box.client, box.mailbox, waiting=1, held=2)
    assert await look(box.mailbox) == {b.position, c.position}
    peer = await harness.client()
    assert await peer.outstanding(box.mailbox) == {b.position, c.position}


@CASES.case(281)
async def outstanding_of_no_mailbox_is_empty_and_makes_none(harness: Harness) -> None:
    client, mailbox = await harness.client(), topics.inbox_of(harness.name())
    assert await client.outstanding(mailbox) == frozenset()
    assert await client.ensure(mailbox) is True, "asking made the mailbox"


@CASES.case(281)
async def only_strays_are_handed_back(harness: Harness) -> None:
    """The owner works its mailbox on, and takes back what a dead fetch had swallowed."""
    dead = await seat(harness)
    await dead.send("a", "b", "c")
    (a,) = await dead.fetch(1)
    await dead.client.stop()
    heir = await seat(harness, mailbox=dead.mailbox)
    b, c = await heir.take(2)
    await heir.client.settle([(c, Retry(30.0))])
    found = await heir.client.outstanding(heir.mailbox)
    assert found == {a.position, b.position, c.position}
    strays = found - {b.position, c.position}
    assert await heir.client.reclaim(heir.mailbox, only=strays) == 1
    back = await heir.fetch()
    assert (bodies(back), counts(back)) == (["a"], [2])
    assert await heir.client.reclaim(heir.mailbox, only=strays) == 0, "it is in our hands now"
    assert await heir.fetch(5, harness.quiet_s) == []


@CASES.case(278, needs="virtual_time")
async def what_a_dead_router_held_comes_back_by_itself(harness: Harness) -> None:
    """Several nodes read it at once: nobody may reclaim there, and nobody has to."""
    dead = await seat(harness, mailbox=topics.inbound())
    await dead.send("a", "b")
    assert bodies(await dead.fetch(1)) == ["a"]
    await dead.client.stop()
    peer = await seat(harness, mailbox=topics.inbound())
    await peer.done(await peer.take(1))
    began = now()
    back = await peer.fetch(5, 30.0)
    assert (bodies(back), counts(back)) == (["a"], [2])
    assert 19.0 <= now() - began <= 20.0
