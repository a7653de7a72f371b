"""Cases: start and stop, a queue that is not live, listeners, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.ports import NotLive, TooLarge
from crewlet import topics
from crewlet.events import Event
from crewlet.events.envelope import MAX_EVENT_BYTES
from crewlet.testing.conformance.queue.bench import Bench, Desk
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import BEGIN, Reader, event, name_of
from crewlet.testing.conformance.queue.verbs import all_raise, all_verbs
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


@CASES.case(71)
async def idempotent_start_stop(bench: Bench) -> None:
    """Twice is once; and after a stop it starts as if it were new, with nothing attached."""
    desk = await bench.desk()
    first = await desk.subscribe()
    await desk.queue.start()
    await desk.flows(first)
    await desk.emptied()
    await desk.queue.stop()
    await desk.queue.stop()
    await desk.queue.start()
    assert await desk.queue.detach(*desk.pair) is False
    second = await desk.subscribe()
    await desk.flows(second, "anew")
    assert (first.names, second.names) == (["control"], ["anew"])


@CASES.case(50, 71)
async def unstarted_and_stopped_answer_the_same_for_every_verb(bench: Bench) -> None:
    """Each says that it is not live, and none of them has an effect."""
    desk = await bench.desk()
    await desk.send("kept")
    unstarted = await bench.queue(started=False)
    stopped = await bench.queue()
    await stopped.stop()
    for queue in (unstarted, stopped):
        await all_raise(all_verbs(queue, *desk.pair), NotLive)
        assert await queue.wait_for_handlers(0.0) == 0
    listed = [state.mailbox for state in await desk.queue.list(desk.topic)]
    assert listed == [desk.mailbox]
    await desk.settled_to(waiting=1, in_flight=0)
    await unstarted.start()
    mine = Desk(bench, unstarted, desk.mailbox)
    reader = await mine.subscribe()
    await reader.until("kept")
    assert reader.names == ["kept"], "a verb of a queue that was not live had an effect"


@CASES.case(71)
async def every_verb_works_on_a_live_queue(bench: Bench) -> None:
    """The control of the case above: the same calls, of a queue that is started."""
    desk = await bench.desk()
    for verb in all_verbs(desk.queue, *desk.pair).values():
        await verb()


@CASES.case(1)
async def backend_name(bench: Bench) -> None:
    """One word for people, the same whether or not the queue is live."""
    queue = await bench.queue(started=False)
    before = queue.backend
    await queue.start()
    assert queue.backend == before == (await bench.queue()).backend
    await queue.stop()
    assert queue.backend == before
    assert before and before == before.strip()


@CASES.case(207, 208)
async def a_publish_listener_sees_every_publish(bench: Bench) -> None:
    """The stamped event, once it is stored, on the publisher's task - covered or not."""
    desk = await bench.desk()
    heard: list[tuple[str, Event, object]] = []

    def listen(topic: str, event: Event) -> None:
        heard.append((topic, event, asyncio.current_task()))

    desk.queue.add_listener(listen)
    (covered,) = await desk.send("a")
    nowhere = topics.event(bench.name())
    dropped = await desk.queue.publish(nowhere, event(nowhere, "b"))
    me = asyncio.current_task()
    assert heard == [(desk.topic, covered.event, me), (nowhere, dropped.event, me)]
    assert covered.event.node == "node-1"
    peer = await desk.peer()
    await peer.send("c")
    assert len(heard) == 2, "a listener is its own queue's"


@CASES.case(207)
async def a_listener_that_fails_prevents_nothing(bench: Bench) -> None:
    """The publish succeeds, the others are told, the mail arrives."""
    desk = await bench.desk()
    heard: list[str] = []

    def fail(topic: str, event: Event) -> None:
        raise RuntimeError("planted")

    def give_up(topic: str, event: Event) -> None:
        raise asyncio.CancelledError

    for listener in (fail, give_up, lambda topic, said: heard.append(name_of(said))):
        desk.queue.add_listener(listener)
    reader = await desk.subscribe()
    await desk.flows(reader)
    assert heard == ["control"]


@CASES.case(49)
async def an_oversized_publish_is_refused_and_leaves_nothing(bench: Bench) -> None:
    """One error of its own, no mail, no listener told; the next publish works."""
    desk = await bench.desk()
    heard: list[str] = []
    desk.queue.add_listener(lambda topic, said: heard.append(name_of(said)))
    small = event(desk.topic, "large")
    large = Event.new(
        small.type,
        id=small.id,
        at=BEGIN,
        trace=small.trace,
        payload={"name": "large", "filling": "x" * MAX_EVENT_BYTES},
    )
    async with raises(TooLarge):
        await desk.queue.publish(desk.topic, large)
    await desk.settled_to(waiting=0, in_flight=0)
    reader = await desk.subscribe()
    await desk.flows(reader)
    assert reader.names == heard == ["control"]


@CASES.case(24, 48)
async def a_bad_topic_is_refused_by_every_verb(bench: Bench) -> None:
    """Wildcards, gaps, white space: nothing is made of them, and no listener is told."""
    desk = await bench.desk()
    heard: list[str] = []
    desk.queue.add_listener(lambda topic, said: heard.append(topic))
    for bad in (f"{desk.topic}.*", f"{desk.topic}.>", f"{desk.topic} x", f"{desk.topic}..x", ""):
        for verb in (
            desk.queue.publish(bad, event(desk.topic, "bad")),
            desk.queue.ensure(bad, "group"),
            desk.queue.subscribe(bad, "group", Reader()),
        ):
            async with raises(ValueError):
                await verb
    assert [state.mailbox for state in await desk.queue.list(desk.topic)] == [desk.mailbox]
    await desk.flows(await desk.subscribe())
    assert heard == [desk.topic]


@CASES.case(59)
async def ensuring_again_keeps_the_mail(bench: Bench) -> None:
    """What waits and what is in somebody's hands."""
    desk = await bench.desk()
    reader = Reader()
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a", "b")
    await reader.until("a")
    peer = await desk.peer()
    for queue in (desk.queue, peer.queue):
        assert await queue.ensure(*desk.pair) is False
    await desk.settled_to(waiting=1, in_flight=1)
    reader.release("a")
    await reader.until("b")
    await desk.emptied()
    assert reader.names == ["a", "b"]


@CASES.case(69)
async def delete_leaves_the_sibling_group(bench: Bench) -> None:
    """Its mail, its reader and its counts."""
    desk = await bench.desk()
    sibling = desk.sibling("kept")
    reader = Reader()
    reader.hold("a")
    await sibling.subscribe(reader)
    await desk.send("a", "b")
    await reader.until("a")
    assert await desk.queue.delete(*desk.pair) is True
    reader.release("a")
    await reader.until("a", "b")
    await sibling.emptied()
    assert reader.headrooms("b") == [24]


@CASES.case(65, 70)
async def quiesce_with_no_attachment_changes_nothing(bench: Bench) -> None:
    """False, no mailbox made, and nothing is waiting for the reader that comes."""
    desk = await bench.desk(ensured=False)
    for _ in range(2):
        assert await desk.queue.quiesce(*desk.pair) is False
        assert await desk.queue.unquiesce(*desk.pair) is False
        assert await desk.queue.detach(*desk.pair) is False
        assert await desk.queue.delete(*desk.pair) is False
    assert await desk.state() is None
    await desk.queue.quiesce(*desk.pair)
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.queue.detach(*desk.pair)
    assert await desk.queue.quiesce(*desk.pair) is False
    assert await desk.queue.unquiesce(*desk.pair) is False
