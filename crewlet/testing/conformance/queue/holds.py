"""Cases: holds have reasons and lie over one pair of one client, attached or not."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.ports import NoMailbox
from crewlet import topics
from crewlet.testing.conformance.queue.bench import Bench, Desk
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import Reader
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()

ROUNDS: Final = 24
"""Races are run so often, each time a little further apart."""


@CASES.case(35, 136, 138)
async def a_hold_buffers_in_the_mailbox(bench: Bench) -> None:
    """Held mail waits at the broker, in order, and its count is untouched."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    await desk.flows(reader, "before")
    assert await desk.queue.hold(*desk.pair, "run") is True
    await bench.silence()  # what races a hold comes back, and costs a delivery
    await desk.send("a", "b", "c")
    await desk.settled_to(waiting=3, in_flight=0)
    await bench.silence()
    assert reader.names == ["before"]
    assert await desk.queue.lift(*desk.pair, "run") is True
    await reader.until("a", "b", "c")
    assert reader.names == ["before", "a", "b", "c"]
    assert reader.headrooms("a") == reader.headrooms("c") == [24]


@CASES.case(136)
async def a_hold_ends_with_its_last_reason(bench: Bench) -> None:
    """Each reason is lifted by its own name; the last one lets mail flow."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    assert await desk.queue.hold(*desk.pair, "run") is True
    assert await desk.queue.hold(*desk.pair, "no-model") is True
    assert await desk.queue.hold(*desk.pair, "run") is False
    await desk.send("a")
    assert await desk.queue.lift(*desk.pair, "run") is True
    await bench.silence()
    assert reader.names == []
    assert await desk.queue.lift(*desk.pair, "no-model") is True
    await reader.until("a")


@CASES.case(136)
async def a_hold_is_keyed_by_its_pair(bench: Bench) -> None:
    """The other group of the same topic is served."""
    desk = await bench.desk()
    sibling = desk.sibling("free")
    held, free = await desk.subscribe(), await sibling.subscribe()
    await desk.queue.hold(*desk.pair, "run")
    await desk.send("a")
    await free.until("a")
    await bench.silence()
    assert held.names == []
    await desk.queue.lift(*desk.pair, "run")
    await held.until("a")


@CASES.case(136)
async def lifting_what_is_not_held_is_nothing(bench: Bench) -> None:
    """Unknown reasons, lifted ones, and pairs that nobody knows: false, and no effect."""
    desk = await bench.desk(ensured=False)
    assert await desk.queue.lift(*desk.pair, "run") is False
    assert await desk.state() is None
    reader = await desk.subscribe()
    await desk.queue.hold(*desk.pair, "run")
    assert await desk.queue.lift(*desk.pair, "other") is False
    await desk.send("a")
    await bench.silence()
    assert reader.names == []
    assert await desk.queue.lift(*desk.pair, "run") is True
    assert await desk.queue.lift(*desk.pair, "run") is False
    await reader.until("a")


@CASES.case(70, 136, 137)
async def a_hold_may_be_taken_before_anything_attaches(bench: Bench) -> None:
    """Then nothing slips past it; and it makes no mailbox."""
    desk = await bench.desk(ensured=False)
    assert await desk.queue.hold(*desk.pair, "recovered") is True
    assert await desk.state() is None
    reader = await desk.subscribe()
    await desk.send("a")
    await bench.silence()
    assert reader.names == []
    await desk.settled_to(waiting=1, in_flight=0)
    assert await desk.queue.lift(*desk.pair, "recovered") is True
    await reader.until("a")


@CASES.case(136, 137)
async def a_hold_that_crosses_an_attachment_holds(bench: Bench) -> None:
    """At whatever moment of a subscription it is taken: nothing slips past it, and it can be
    lifted."""
    queue = await bench.queue()
    desks = [Desk(bench, queue, topics.inbox_of(bench.name())) for _ in range(ROUNDS)]
    readers = [Reader() for _ in desks]
    for turns, (desk, reader) in enumerate(zip(desks, readers, strict=True)):
        await queue.hold(*desk.pair, "recovered")
        attaching = asyncio.create_task(desk.subscribe(reader))
        for _ in range(turns):
            await asyncio.sleep(0)
        assert await queue.hold(*desk.pair, "run") is True
        assert await queue.lift(*desk.pair, "recovered") is True
        await attaching
    for desk in desks:
        await desk.send("a")
    await bench.silence()
    assert [reader.names for reader in readers] == [[] for _ in readers]
    for desk, reader in zip(desks, readers, strict=True):
        assert await queue.lift(*desk.pair, "run") is True
        await reader.until("a")


@CASES.case(136)
async def a_hold_is_its_client_s_alone(bench: Bench) -> None:
    """A peer of the group goes on reading."""
    one = await bench.desk()
    two = await one.peer()
    first, second = await one.subscribe(), await two.subscribe()
    await one.queue.hold(*one.pair, "run")
    await one.send("a", "b")
    await second.until("a", "b")
    assert first.names == []


@CASES.case(65, 136)
async def a_hold_lets_the_running_handler_finish(bench: Bench) -> None:
    """Its outcome applies; what follows waits."""
    desk = await bench.desk()
    reader = Reader()
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a", "b")
    await reader.until("a")
    await desk.queue.hold(*desk.pair, "run")
    reader.release("a")
    await reader.until_ended(1)
    await desk.settled_to(waiting=1, in_flight=0)
    assert reader.names == ["a"]
    await desk.queue.lift(*desk.pair, "run")
    await reader.until("b")


@CASES.case(70)
async def hold_does_not_resurrect_what_was_deleted(bench: Bench) -> None:
    """A brake on a deleted mailbox makes nothing, and its reader stays gone."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    await desk.flows(reader)
    assert await desk.queue.delete(*desk.pair) is True
    await desk.queue.hold(*desk.pair, "run")
    assert await desk.queue.quiesce(*desk.pair) is False
    await desk.queue.lift(*desk.pair, "run")
    assert await desk.queue.unquiesce(*desk.pair) is False
    assert await desk.state() is None
    async with raises(NoMailbox):
        await desk.send("refused")
    await desk.queue.ensure(*desk.pair)
    await desk.send("kept")
    await bench.silence()
    assert reader.names == ["control"]
    again = await desk.subscribe()
    await again.until("kept")
    assert again.names == ["kept"]


@CASES.case(68)
async def two_pairs_of_a_client_are_braked_apart(bench: Bench) -> None:
    """A seat's control is served while its inbox rests."""
    name = bench.name()
    inbox = Desk(bench, await bench.queue(), topics.inbox_of(name))
    control = Desk(bench, inbox.queue, topics.control_of(name))
    first, second = await inbox.subscribe(), await control.subscribe()
    await inbox.queue.quiesce(*inbox.pair)
    await inbox.send("a")
    await control.flows(second)
    assert first.names == []
    await inbox.queue.unquiesce(*inbox.pair)
    await first.until("a")
