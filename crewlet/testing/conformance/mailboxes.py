"""Cases: mailboxes come and go, and what is published finds them."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.delivery import Mailbox
from actors.ports import NoMailbox, TooLarge
from crewlet import topics
from crewlet.events.envelope import MAX_EVENT_BYTES
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import (
    Harness,
    bodies,
    pass_time,
    seat,
    send,
    settled_to,
    state,
)
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


@CASES.case(16, 33)
async def ensure_reports_creation_and_keeps_mail(harness: Harness) -> None:
    client = await harness.client()
    mailbox = topics.inbox_of(harness.name())
    assert await client.ensure(mailbox) is True
    await send(client, mailbox.topic, "kept")
    assert await client.ensure(mailbox) is False
    again = await seat(harness, mailbox=mailbox)
    assert bodies(await again.take(1)) == ["kept"]


@CASES.case(28)
async def a_publish_to_no_mailbox_keeps_nothing_and_succeeds(harness: Harness) -> None:
    client, name = await harness.client(), harness.name()
    mailbox = Mailbox(f"{topics.INBOUND}.{name}", name)
    receipt = await send(client, mailbox.topic, "dropped")
    assert not receipt.duplicate
    assert await client.ensure(mailbox) is True
    await send(client, mailbox.topic, "kept")
    late = await seat(harness, mailbox=mailbox)
    assert bodies(await late.fetch()) == ["kept"]


@CASES.case(27, 279)
async def a_publish_to_a_seat_without_a_mailbox_is_refused(harness: Harness) -> None:
    client, name = await harness.client(), harness.name()
    for mailbox in (topics.inbox_of(name), topics.control_of(name), topics.reflect_of(name)):
        async with raises(NoMailbox):
            await send(client, mailbox.topic, "refused")
        assert await client.ensure(mailbox) is True, "the publish made the mailbox"
        receipt = await send(client, mailbox.topic, "kept")
        assert not receipt.duplicate
        assert await client.delete(mailbox) is True
        for body in ("refused", "kept"):
            async with raises(NoMailbox):
                await send(client, mailbox.topic, body)
        await client.ensure(mailbox)
        late = await seat(harness, mailbox=mailbox)
        await send(client, mailbox.topic, "last")
        assert bodies(await late.fetch()) == ["last"]


@CASES.case(279)
async def a_mailbox_that_a_peer_deleted_is_missed_soon(harness: Harness) -> None:
    client, peer = await harness.client(), await harness.client()
    mailbox = topics.inbox_of(harness.name())
    await client.ensure(mailbox)
    await send(client, mailbox.topic, "kept")
    await peer.delete(mailbox)
    for number in range(200):
        try:
            await send(client, mailbox.topic, f"{number}")
        except NoMailbox:
            break
        await asyncio.sleep(0.01)
    else:
        raise AssertionError("it was published to for seconds after it had been deleted")


@CASES.case(279)
async def any_group_s_mailbox_covers_the_topic(harness: Harness) -> None:
    client, name = await harness.client(), harness.name()
    audit = Mailbox(topics.inbox(name), f"{name}-audit")
    await client.ensure(Mailbox(topics.control(name), "audit"))
    async with raises(NoMailbox):
        await send(client, audit.topic, "refused")
    await client.ensure(audit)
    box = await seat(harness, mailbox=audit)
    await box.send("kept")
    assert bodies(await box.fetch()) == ["kept"]


@CASES.case(11, 27)
async def a_mailbox_that_nobody_is_attached_to_keeps_its_mail(harness: Harness) -> None:
    client = await harness.client()
    mailbox = topics.inbox_of(harness.name())
    await client.ensure(mailbox)
    for body in ("a", "b", "c"):
        await send(client, mailbox.topic, body)
    await client.stop()
    peer = await seat(harness, mailbox=mailbox)
    assert bodies(await peer.take(3)) == ["a", "b", "c"]


@CASES.case(34)
async def attaching_to_no_mailbox_is_refused(harness: Harness) -> None:
    client = await harness.client()
    mailbox = topics.inbox_of(harness.name())
    async with raises(NoMailbox):
        await client.attach(mailbox, epoch=1)
    await client.ensure(mailbox)
    attachment = await client.attach(mailbox, epoch=7)
    assert (attachment.mailbox, attachment.epoch) == (mailbox, 7)


@CASES.case(16)
async def each_group_gets_its_own_copy(harness: Harness) -> None:
    name = harness.name()
    one = await seat(harness, mailbox=Mailbox(topics.inbox(name), f"{name}-one"))
    two = await seat(harness, mailbox=Mailbox(topics.inbox(name), f"{name}-two"))
    await one.send("a", "b")
    assert bodies(await one.take(2)) == ["a", "b"]
    assert bodies(await two.take(2)) == ["a", "b"]


@CASES.case(16)
async def the_members_of_a_group_compete(harness: Harness) -> None:
    one = await seat(harness)
    two = await seat(harness, mailbox=one.mailbox)
    await one.send(*"abcdef")
    first = await one.fetch(3)
    second = await two.fetch(3)
    assert bodies(first) == ["a", "b", "c"]
    assert bodies(second) == ["d", "e", "f"]
    assert await two.fetch(1, harness.quiet_s) == []
    await two.send("g")
    assert bodies(await two.fetch()) == ["g"]


@CASES.case(16, 23)
async def pairs_that_differ_in_a_dot_share_nothing(harness: Harness) -> None:
    """The names of two mailboxes may be rewritten by a broker, never to the same."""
    name = harness.name()
    pairs = [
        Mailbox(topics.event(f"{name}.x"), f"{name}_y"),
        Mailbox(topics.event(f"{name}.x"), f"{name}.y"),
        Mailbox(topics.event(f"{name}_x"), f"{name}.y"),
    ]
    client = await harness.client()
    for pair in pairs:
        assert await client.ensure(pair) is True
    await send(client, pairs[0].topic, "for two")
    await settled_to(client, pairs[0], waiting=1, held=0)
    await settled_to(client, pairs[1], waiting=1, held=0)
    assert await client.delete(pairs[0]) is True
    await settled_to(client, pairs[1], waiting=1, held=0)
    await settled_to(client, pairs[2], waiting=0, held=0)


@CASES.case(16)
async def deleting_leaves_the_sibling_and_answers_false_twice(harness: Harness) -> None:
    name = harness.name()
    gone = Mailbox(topics.inbox(name), f"{name}-gone")
    kept = await seat(harness, mailbox=Mailbox(topics.inbox(name), f"{name}-kept"))
    client = kept.client
    await client.ensure(gone)
    await kept.send("a")
    assert await client.delete(gone) is True
    assert await client.delete(gone) is False
    assert await state(client, gone) is None
    assert bodies(await kept.fetch()) == ["a"]
    assert await client.ensure(gone) is True
    await kept.send("b")
    back = await seat(harness, mailbox=gone)
    assert bodies(await back.fetch()) == ["b"], "the mail before the delete came back"


@CASES.case(33)
async def list_knows_every_mailbox_of_a_pattern(harness: Harness) -> None:
    client = await harness.client()
    name, other = harness.name(), harness.name()
    inbox, control = topics.inbox_of(name), topics.control_of(name)
    for mailbox in (inbox, control, topics.inbox_of(other)):
        await client.ensure(mailbox)

    async def listed(pattern: str) -> list[Mailbox]:
        found = [one.mailbox for one in await client.list(pattern)]
        assert len(found) == len(set(found))
        return sorted(mailbox for mailbox in found if name in mailbox.topic)

    assert await listed(inbox.topic) == [inbox]
    assert await listed(topics.INBOXES) == [inbox]
    assert await listed(topics.AGENT) == [control, inbox]
    assert await listed(inbox.topic.removesuffix("inbox") + "*") == [control, inbox]
    assert await listed(topics.NOTIFICATIONS) == []


@CASES.case(35)
async def list_tells_waiting_from_in_flight(harness: Harness) -> None:
    box = await seat(harness)
    await settled_to(box.client, box.mailbox, waiting=0, held=0)
    await box.send("a", "b", "c")
    await settled_to(box.client, box.mailbox, waiting=3, held=0)
    taken = await box.fetch(2)
    await settled_to(box.client, box.mailbox, waiting=1, held=2)
    await box.done(taken)
    await settled_to(box.client, box.mailbox, waiting=1, held=0)


@CASES.case(49)
async def an_oversized_publish_is_refused_and_leaves_nothing(harness: Harness) -> None:
    box = await seat(harness)
    async with raises(TooLarge):
        await box.client.publish(
            box.mailbox.topic, b"x" * (MAX_EVENT_BYTES + 1), message_id=harness.name()
        )
    largest = b"y" * MAX_EVENT_BYTES
    await box.client.publish(box.mailbox.topic, largest, message_id=harness.name())
    taken = await box.fetch()
    assert [len(delivery.body) for delivery in taken] == [MAX_EVENT_BYTES]
    await box.done(taken)


@CASES.case(48)
async def a_repeated_message_id_is_stored_once(harness: Harness) -> None:
    box = await seat(harness)
    first = await box.client.publish(box.mailbox.topic, b"a", message_id=f"{box.mailbox}-1")
    again = await box.client.publish(box.mailbox.topic, b"a", message_id=f"{box.mailbox}-1")
    other = await box.client.publish(box.mailbox.topic, b"a", message_id=f"{box.mailbox}-2")
    assert (first.duplicate, again.duplicate, other.duplicate) == (False, True, False)
    assert first.position == again.position < other.position
    taken = await box.take(2)
    assert [one.message_id for one in taken] == [f"{box.mailbox}-1", f"{box.mailbox}-2"]
    assert [one.position for one in taken] == [first.position, other.position]


@CASES.case(48, needs="virtual_time")
async def a_message_id_is_forgotten_after_the_window(harness: Harness) -> None:
    box = await seat(harness)
    for waited_s, duplicate in ((0.0, False), (119.0, True), (2.0, False)):
        await pass_time(waited_s)
        receipt = await box.client.publish(box.mailbox.topic, b"a", message_id="same")
        assert receipt.duplicate is duplicate, f"after {waited_s} s more"


@CASES.case(24)
async def a_subject_with_a_wildcard_a_space_or_a_gap_is_refused(harness: Harness) -> None:
    client = await harness.client()
    good = topics.inbox(harness.name())
    for bad in (f"{good}.*", f"{good}.>", f"{good} x", f"{good}..x", f"{good}.", ""):
        async with raises(ValueError):
            await client.publish(bad, b"x", message_id="refused")
        async with raises(ValueError):
            await client.ensure(Mailbox(bad, "refused"))
    assert await client.ensure(Mailbox(good, "taken")) is True
    await send(client, good, "taken")


@CASES.case(25)
async def a_namespace_of_nobody_s_is_made_on_demand(harness: Harness) -> None:
    name = harness.name().replace("-", "_")
    client = await harness.client()
    mailbox = Mailbox(f"{name}.jobs", "workers")
    await send(client, mailbox.topic, "dropped")
    assert await client.ensure(mailbox) is True
    await send(client, mailbox.topic, "kept")
    worker = await seat(harness, mailbox=mailbox)
    assert bodies(await worker.fetch()) == ["kept"]


@CASES.case(26)
async def a_namespace_that_would_alias_is_refused(harness: Harness) -> None:
    name = harness.name().replace("-", "_")
    client = await harness.client()
    for bad in (f"{name}-x.jobs", f"{name.upper()}.jobs"):
        async with raises(ValueError):
            await client.publish(bad, b"x", message_id="refused")
    await send(client, f"{name}.jobs", "taken")
