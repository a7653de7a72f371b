"""Cases: a listing names every mailbox that is there, as it was made, and nothing else."""

from __future__ import annotations

from typing import Final

from actors.delivery import Mailbox
from crewlet import topics
from crewlet.queue import EventQueue
from crewlet.testing.conformance.queue.bench import Bench, Desk
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


async def _listed(queue: EventQueue, pattern: str, *names: str) -> list[Mailbox]:
    """What a pattern lists, of those whose topic has one of the names in it."""
    found = [state.mailbox for state in await queue.list(pattern)]
    assert len(found) == len(set(found)), "a mailbox is listed twice"
    return sorted(one for one in found if any(name in one.topic for name in names))


@CASES.case(62)
async def a_listing_names_what_is_attached_and_what_is_not(bench: Bench) -> None:
    """Whether somebody reads is no part of the question."""
    desk = await bench.desk()
    idle = desk.sibling("idle")
    await idle.queue.ensure(*idle.pair)
    await desk.subscribe()
    assert await _listed(desk.queue, desk.topic, desk.topic) == [desk.mailbox, idle.mailbox]
    await desk.queue.detach(*desk.pair)
    assert await _listed(desk.queue, desk.topic, desk.topic) == [desk.mailbox, idle.mailbox]


@CASES.case(62)
async def a_listing_is_the_same_on_every_node(bench: Bench) -> None:
    """Whoever made a mailbox, and whether or not that node is still there."""
    one = await bench.desk()
    two = await one.peer()
    mine = two.sibling("two")
    await mine.queue.ensure(*mine.pair)
    both = [one.mailbox, mine.mailbox]
    assert await _listed(one.queue, one.topic, one.topic) == both
    assert await _listed(two.queue, one.topic, one.topic) == both
    await one.queue.stop()
    assert await _listed(two.queue, one.topic, one.topic) == both


@CASES.case(61, 62, 64)
async def a_listing_names_pairs_exactly(bench: Bench) -> None:
    """Dots, underscores, dashes and capitals of topic and group come back as they went in."""
    queue, name = await bench.queue(), bench.name()
    pairs = sorted(
        Mailbox(topics.event(f"{name}{tail}"), group)
        for tail, group in (
            (".a", f"{name}.g"),
            ("_a", f"{name}.g"),
            (".a", f"{name}_g"),
            (".A", f"{name} G/é"),
        )
    )
    for pair in pairs:
        assert await queue.ensure(pair.topic, pair.group) is True
    assert await _listed(queue, topics.EVENTS, name) == pairs


@CASES.case(62, 210)
async def a_listing_takes_wildcards(bench: Bench) -> None:
    """`*` is one segment, `>` one or more at the end; a topic alone is itself."""
    queue, name = await bench.queue(), bench.name()
    inbox, control = topics.inbox_of(name), topics.control_of(name)
    deep = Mailbox(topics.event(f"{name}.x.y"), "deep")
    for one in (inbox, control, deep):
        await queue.ensure(one.topic, one.group)
    stem = inbox.topic.removesuffix("inbox")
    event = topics.event(name)
    for pattern, wanted in (
        (inbox.topic, [inbox]),
        (topics.INBOXES, [inbox]),
        (f"{stem}*", [control, inbox]),
        (f"{stem}>", [control, inbox]),
        (topics.AGENT, [control, inbox]),
        (f"{event}.*", []),
        (f"{event}.*.y", [deep]),
        (f"{event}.>", [deep]),
        (f"{event}.x.y.>", []),
        (topics.NOTIFICATIONS, []),
        (">", sorted([inbox, control, deep])),
    ):
        assert await _listed(queue, pattern, name) == wanted, pattern


@CASES.case(62)
async def an_empty_pattern_is_refused(bench: Bench) -> None:
    """It would mean all or nothing: neither is guessed. The same for what is no pattern."""
    desk = await bench.desk()
    for bad in ("", f"{desk.topic}..x", f"{desk.topic} x", f">.{desk.topic}"):
        async with raises(ValueError):
            await desk.queue.list(bad)
    assert await _listed(desk.queue, desk.topic, desk.topic) == [desk.mailbox]


@CASES.case(63, 73)
async def a_listing_leaves_out_what_only_listens(bench: Bench) -> None:
    """Stream readers, and those who serve questions, are no mailboxes."""
    queue, name = await bench.queue(), bench.name()
    event = Desk(bench, queue, Mailbox(topics.event(name), name))
    await queue.subscribe_stream(event.topic, lambda topic, heard: None)
    assert await _listed(queue, ">", name) == []
    await queue.ensure(*event.pair)
    assert await _listed(queue, ">", name) == [event.mailbox]


@CASES.case(63, 69)
async def a_listing_leaves_out_what_was_deleted(bench: Bench) -> None:
    """At once, and until it is made again."""
    desk = await bench.desk()
    sibling = desk.sibling("kept")
    await sibling.queue.ensure(*sibling.pair)
    await desk.queue.delete(*desk.pair)
    assert await _listed(desk.queue, desk.topic, desk.topic) == [sibling.mailbox]
    await desk.queue.ensure(*desk.pair)
    assert await _listed(desk.queue, desk.topic, desk.topic) == [desk.mailbox, sibling.mailbox]


@CASES.case(35, 62)
async def a_listing_tells_waiting_mail_from_mail_in_hand(bench: Bench) -> None:
    """Whose mailbox is stuck can be seen by it."""
    desk = await bench.desk()
    await desk.settled_to(waiting=0, in_flight=0)
    await desk.send("a", "b")
    await desk.settled_to(waiting=2, in_flight=0)
    reader = await desk.subscribe()
    await reader.until("a", "b")
    await desk.settled_to(waiting=0, in_flight=0)
