"""Cases: what the broker itself gave up on is found, and becomes one dead letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from actors.delivery import BUDGET, Dead, Delivery, HandBack, Mailbox, Retry
from crewlet import topics
from crewlet.broker.port import DeadLetter
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import Harness, Seat, bodies, seat, settled_to

CASES: Final = Table()


async def _exhaust(harness: Harness, box: Seat, *, last: bool = True) -> int:
    """Fetch all that is there and hand it back until the broker gives up on it; how often.
    Not `last`: its last delivery is held, as by a holder that died."""
    times = 0
    while some := await box.fetch(20, harness.quiet_s):
        times += 1
        assert {one.count for one in some} == {times}
        if not last and times == 30:
            return times
        assert times <= 2 * BUDGET, "nothing bounds the deliveries"
        await box.client.settle([(one, HandBack()) for one in some])
    return times


async def _bury(box: Seat, swept: Sequence[Delivery]) -> None:
    await box.client.settle([(one, Dead("the broker gave up")) for one in swept])


async def _letters(box: Seat) -> list[DeadLetter]:
    letters = await box.client.dead_letters(1000)
    return [letter for letter in letters if letter.mailbox == box.mailbox]


@CASES.case(43)
async def a_message_that_the_broker_gave_up_on_becomes_one_dead_letter(harness: Harness) -> None:
    box = await seat(harness)
    body = bytes(range(256))
    receipt = await box.client.publish(box.mailbox.topic, body, message_id=harness.name())
    times = await _exhaust(harness, box)
    assert times > BUDGET
    await settled_to(box.client, box.mailbox, waiting=0, held=0)
    (one,) = swept = await box.client.sweep(box.mailbox)
    assert (one.mailbox, one.body, one.count) == (box.mailbox, body, times)
    assert one.position == receipt.position
    assert await box.client.sweep(box.mailbox) == swept, "looking changed something"
    await _bury(box, swept)
    await _bury(box, swept)
    (letter,) = await _letters(box)
    assert (letter.body, letter.deliveries) == (body, times)
    assert letter.message_id == one.message_id
    assert await box.client.sweep(box.mailbox) == []
    await box.send("next")
    assert bodies(await box.fetch()) == ["next"]


@CASES.case(42, 43)
async def so_does_one_whose_last_holder_died(harness: Harness) -> None:
    dead = await seat(harness)
    await dead.send("poison")
    assert await _exhaust(harness, dead, last=False) == 30
    assert await dead.client.sweep(dead.mailbox) == []
    await dead.client.stop()
    heir = await seat(harness, mailbox=dead.mailbox)
    assert await heir.client.reclaim(heir.mailbox) == 1
    assert await heir.fetch(5, harness.quiet_s) == []
    swept = await heir.client.sweep(heir.mailbox)
    assert bodies(swept) == ["poison"]
    await _bury(heir, swept)
    assert [letter.body for letter in await _letters(heir)] == [b"poison"]
    assert await heir.client.sweep(heir.mailbox) == []


@CASES.case(43)
async def an_ordinary_mailbox_sweeps_to_nothing(harness: Harness) -> None:
    box = await seat(harness)
    assert await box.client.sweep(box.mailbox) == []
    await box.send("done", "held", "waiting")
    done, held = await box.take(2)
    await box.done([done])
    assert await box.client.sweep(box.mailbox) == []
    await box.client.settle([(held, HandBack())])
    assert await box.client.sweep(box.mailbox) == []
    await box.done(await box.take(2))
    await settled_to(box.client, box.mailbox, waiting=0, held=0)
    assert await box.client.sweep(box.mailbox) == []


@CASES.case(43)
async def nothing_is_swept_while_anything_is_in_flight(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("poison")
    await _exhaust(harness, box)
    await box.send("waiting")
    assert bodies(await box.client.sweep(box.mailbox)) == ["poison"]
    (one,) = await box.take(1)
    assert one.body == b"waiting"
    assert await box.client.sweep(box.mailbox) == []
    await box.client.settle([(one, Retry(0.3))])
    assert await box.client.sweep(box.mailbox) == []
    (again,) = await box.take(1)
    assert (again.body, again.count) == (b"waiting", 2)
    await box.done([again])
    await settled_to(box.client, box.mailbox, waiting=0, held=0)
    assert bodies(await box.client.sweep(box.mailbox)) == ["poison"]


@CASES.case(43)
async def several_are_swept_in_order_and_without_what_was_done(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "done", "b")
    taken = await box.take(3)
    await box.done(taken[1:2])
    for one in (taken[0], taken[2]):
        await box.client.settle([(one, HandBack())])
    while some := await box.fetch(20, harness.quiet_s):
        await box.client.settle([(one, HandBack()) for one in some])
    await box.send("later")
    await box.done(await box.take(1))
    await settled_to(box.client, box.mailbox, waiting=0, held=0)
    swept = await box.client.sweep(box.mailbox)
    assert bodies(swept) == ["a", "b"]
    await _bury(box, swept[:1])
    assert bodies(await box.client.sweep(box.mailbox)) == ["b"]


@CASES.case(23, 43)
async def another_group_s_mail_is_never_swept(harness: Harness) -> None:
    """A broker that keeps one copy for both may wait with a sweep until the other is done."""
    one = await seat(harness)
    two = await seat(harness, mailbox=Mailbox(one.mailbox.topic, one.mailbox.group + "-2"))
    await one.send("poison", "mine")
    poison, mine = await one.take(2)
    await one.done([mine])
    await one.client.settle([(poison, HandBack())])
    while some := await one.fetch(20, harness.quiet_s):
        await one.client.settle([(again, HandBack()) for again in some])
    assert bodies(await one.client.sweep(one.mailbox)) in ([], ["poison"])
    assert await two.client.sweep(two.mailbox) == []
    await two.done(await two.take(2))
    await settled_to(two.client, two.mailbox, waiting=0, held=0)
    swept = await one.client.sweep(one.mailbox)
    assert bodies(swept) == ["poison"]
    assert await two.client.sweep(two.mailbox) == []
    await _bury(one, swept)
    assert len(await _letters(one)) == 1
    assert await _letters(two) == []


@CASES.case(6, 43, needs="restart")
async def it_is_still_found_after_the_broker_came_back(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("poison")
    await _exhaust(harness, box)
    await box.send("later")
    await box.done(await box.take(1))
    await box.client.stop()
    await harness.restart()
    heir = await seat(harness, mailbox=box.mailbox)
    swept = await heir.client.sweep(heir.mailbox)
    assert bodies(swept) == ["poison"]
    await _bury(heir, swept)
    assert [letter.body for letter in await _letters(heir)] == [b"poison"]


@CASES.case(43)
async def no_mailbox_sweeps_to_nothing_and_is_not_made(harness: Harness) -> None:
    client, mailbox = await harness.client(), topics.inbox_of(harness.name())
    assert await client.sweep(mailbox) == []
    assert await client.ensure(mailbox) is True, "asking made the mailbox"
