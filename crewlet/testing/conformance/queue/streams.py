"""Cases: streams show every reader all that is published from now on, and hold up nobody."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.delivery import Mailbox
from crewlet import topics
from crewlet.events import Event
from crewlet.queue import EventQueue
from crewlet.testing.conformance.harness import SOON_S
from crewlet.testing.conformance.queue.bench import Bench
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import event, name_of
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


class Ear:
    """What a stream told, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Event]] = []
        self._changed = asyncio.Event()

    def __call__(self, topic: str, said: Event) -> None:
        self.heard.append((topic, said))
        self._changed.set()

    @property
    def names(self) -> list[str]:
        return [name_of(said) for _, said in self.heard]

    async def until(self, name: str) -> None:
        async with asyncio.timeout(SOON_S):
            while name not in self.names:
                self._changed.clear()
                await self._changed.wait()


async def _say(queue: EventQueue, topic: str, *names: str) -> None:
    for name in names:
        await queue.publish(topic, event(topic, name))


@CASES.case(209, 211)
async def broadcasts_reach_every_reader(bench: Bench) -> None:
    """Two of one client and one of a peer: each hears all of it, stamped, in order."""
    one, two = await bench.queue(), await bench.queue()
    topic = topics.event(bench.name())
    ears = [Ear(), Ear(), Ear()]
    for queue, ear in zip((one, one, two), ears, strict=True):
        await queue.subscribe_stream(topic, ear)
    await _say(one, topic, "a", "b", "c")
    for ear in ears:
        await ear.until("c")
        assert ear.names == ["a", "b", "c"]
        assert {(at, said.node) for at, said in ear.heard} == {(topic, "node-1")}


@CASES.case(211)
async def a_stream_sees_a_peer(bench: Bench) -> None:
    """Whichever node published."""
    one, two = await bench.queue(), await bench.queue()
    topic, ear = topics.event(bench.name()), Ear()
    await one.subscribe_stream(topics.EVENTS, ear)
    await _say(two, topic, "from the peer")
    await ear.until("from the peer")
    assert ear.heard[-1][1].node == "node-2"


@CASES.case(209)
async def a_stream_begins_now(bench: Bench) -> None:
    """What was said before is asked of the event store, not told again."""
    queue, topic, ear = await bench.queue(), topics.event(bench.name()), Ear()
    await _say(queue, topic, "before")
    await queue.subscribe_stream(topic, ear)
    await _say(queue, topic, "after")
    await ear.until("after")
    await bench.silence()
    assert ear.names == ["after"]


@CASES.case(210)
async def a_pattern_filters_a_stream(bench: Bench) -> None:
    """`*` is one segment, `>` one or more; a pattern over every namespace is refused."""
    queue, name = await bench.queue(), bench.name()
    stem = topics.event(name)
    star, rest = Ear(), Ear()
    await queue.subscribe_stream(f"{stem}.*", star)
    await queue.subscribe_stream(f"{stem}.>", rest)
    for tail in ("", ".x", ".x.y", ".z"):
        await _say(queue, f"{stem}{tail}", f"at{tail}")
    await star.until("at.z")
    await rest.until("at.z")
    assert star.names == ["at.x", "at.z"]
    assert rest.names == ["at.x", "at.x.y", "at.z"]
    for wide in (">", "*", "*.x", topics.EVENTS.split(".", maxsplit=1)[0] + ".>", ""):
        async with raises(ValueError):
            await queue.subscribe_stream(wide, star)


@CASES.case(209)
async def unsubscribing_ends_a_stream(bench: Bench) -> None:
    """For the one that closed it, once and for all; twice is once."""
    queue, topic = await bench.queue(), topics.event(bench.name())
    closed, open_ = Ear(), Ear()
    subscription = await queue.subscribe_stream(topic, closed)
    await queue.subscribe_stream(topic, open_)
    await _say(queue, topic, "a")
    await closed.until("a")
    await subscription.close()
    await subscription.close()
    await _say(queue, topic, "b")
    await open_.until("b")
    await bench.silence()
    assert closed.names == ["a"]


@CASES.case(211)
async def a_failing_reader_is_isolated(bench: Bench) -> None:
    """Neither the publish, nor another reader, nor its own next event suffers."""
    queue, topic, ear = await bench.queue(), topics.event(bench.name()), Ear()
    calls: list[str] = []

    def fail(_: str, said: Event) -> None:
        calls.append(name_of(said))
        raise RuntimeError("planted")

    await queue.subscribe_stream(topic, fail)
    await queue.subscribe_stream(topic, ear)
    await _say(queue, topic, "a", "b")
    await ear.until("b")
    assert (calls, ear.names) == (["a", "b"], ["a", "b"])


@CASES.case(46, 211)
async def what_is_no_event_is_not_told(bench: Bench) -> None:
    """It is passed over; the stream goes on."""
    queue, topic, ear = await bench.queue(), topics.event(bench.name()), Ear()
    await queue.subscribe_stream(topic, ear)
    client = await bench.client()
    await client.publish(topic, b"{", message_id=topic)
    await _say(queue, topic, "a")
    await ear.until("a")
    assert ear.names == ["a"]


@CASES.case(209, 211)
async def a_stream_takes_no_mail(bench: Bench) -> None:
    """It stands beside the mailboxes of its topic: they keep what they are sent."""
    desk = await bench.desk()
    ear = Ear()
    await desk.queue.subscribe_stream(desk.topic, ear)
    await desk.send("a")
    await ear.until("a")
    await desk.settled_to(waiting=1, in_flight=0)
    reader = await desk.subscribe()
    await reader.until("a")
    await desk.emptied()


@CASES.case(209, 72)
async def a_stream_goes_on_through_a_drain(bench: Bench) -> None:
    """A pause is of mail; a stop ends streams with everything else."""
    one, two = await bench.queue(), await bench.queue()
    topic, ear, other = topics.event(bench.name()), Ear(), Ear()
    await one.subscribe_stream(topic, ear)
    await two.subscribe_stream(topic, other)
    await one.pause_delivery()
    await _say(two, topic, "a")
    await ear.until("a")
    await one.stop()
    await _say(two, topic, "b")
    await other.until("b")
    assert ear.names == ["a"]
    assert Mailbox(topic, topic) not in [state.mailbox for state in await two.list(topic)]
