"""Cases: the client-wide pause of a drain, and waiting for the handlers that still run."""

from __future__ import annotations

import asyncio
from typing import Final

from crewlet import topics
from crewlet.testing.conformance.harness import now
from crewlet.testing.conformance.queue.bench import Bench, Desk
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import Reader

CASES: Final = Table()

ROUNDS: Final = 24
"""Races are run so often, each time a little further apart."""


@CASES.case(72)
async def pause_delivery_blocks_dispatch_but_accepts_publish(bench: Bench) -> None:
    """Nothing is started any more; what is published waits at the broker."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.queue.pause_delivery()
    await desk.send("a", "b")
    await desk.settled_to(waiting=2, in_flight=0)
    await bench.silence()
    assert reader.names == ["control"]
    peer = await desk.peer()
    second = await peer.subscribe()
    await second.until("a", "b")


@CASES.case(72)
async def pause_is_idempotent(bench: Bench) -> None:
    """And nothing lifts it: no verb of the pair."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.queue.pause_delivery()
    await desk.queue.pause_delivery()
    await desk.queue.hold(*desk.pair, "run")
    await desk.queue.lift(*desk.pair, "run")
    await desk.queue.unquiesce(*desk.pair)
    await desk.send("a")
    await desk.settled_to(waiting=1, in_flight=0)
    await bench.silence()
    assert reader.names == ["control"]


@CASES.case(72)
async def a_late_subscription_inherits_the_pause(bench: Bench) -> None:
    """What attaches during a drain starts nothing either."""
    desk = await bench.desk()
    await desk.queue.pause_delivery()
    reader = await desk.subscribe()
    await desk.send("a")
    await bench.silence()
    assert reader.names == []
    await desk.settled_to(waiting=1, in_flight=0)
    peer = await desk.peer()
    await (await peer.subscribe()).until("a")


@CASES.case(72)
async def a_pause_that_crosses_an_attachment_pauses_it(bench: Bench) -> None:
    """At whatever moment of a subscription it comes."""
    desk = await bench.desk()
    readers = [Reader() for _ in range(ROUNDS)]
    for turns, reader in enumerate(readers):
        mine = Desk(bench, await bench.queue(), desk.mailbox)
        attaching = asyncio.create_task(mine.subscribe(reader))
        for _ in range(turns):
            await asyncio.sleep(0)
        await mine.queue.pause_delivery()
        await attaching
    await desk.send("a")
    await bench.silence()
    assert [reader.names for reader in readers] == [[] for _ in readers]
    await desk.settled_to(waiting=1, in_flight=0)
    await (await desk.subscribe()).until("a")


@CASES.case(71, 72)
async def stop_clears_pause(bench: Bench) -> None:
    """A queue that starts again starts as new."""
    desk = await bench.desk()
    await desk.queue.pause_delivery()
    await desk.queue.stop()
    await desk.queue.start()
    reader = await desk.subscribe()
    await desk.flows(reader)


@CASES.case(72)
async def wait_for_handlers_of_an_idle_queue_is_zero(bench: Bench) -> None:
    """At once, subscribed or not."""
    desk = await bench.desk()
    began = now()
    assert await desk.queue.wait_for_handlers(5.0) == 0
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.emptied()
    assert await desk.queue.wait_for_handlers(5.0) == 0
    assert now() - began < 4.0
    assert desk.queue.in_flight_count == 0


@CASES.case(72)
async def wait_for_handlers_counts_those_that_run(bench: Bench) -> None:
    """At the deadline how many still do; zero as soon as the last has ended."""
    one = await bench.desk()
    two = Desk(bench, one.queue, topics.inbox_of(bench.name()))
    first, second = Reader(), Reader()
    first.hold("a")
    second.hold("b")
    await one.subscribe(first)
    await two.subscribe(second)
    await one.send("a")
    await two.send("b")
    await first.until("a")
    await second.until("b")
    assert one.queue.in_flight_count == 2
    assert await one.queue.wait_for_handlers(0.05) == 2
    first.release("a")
    await first.until_ended(1)
    assert await one.queue.wait_for_handlers(0.05) == 1
    waiting = asyncio.create_task(one.queue.wait_for_handlers(10.0))
    second.release("b")
    assert await waiting == 0


@CASES.case(72)
async def a_handler_that_starts_during_a_drain_is_waited_for(bench: Bench) -> None:
    """However a message and the pause cross: once the wait says 0, nothing runs or starts."""
    desk = await bench.desk()
    for turns in range(ROUNDS):
        mine = Desk(bench, await bench.queue(), desk.mailbox)
        reader = await mine.subscribe()
        sending = asyncio.create_task(desk.send(f"{turns:02}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await mine.queue.pause_delivery()
        assert await mine.queue.wait_for_handlers(5.0) == 0
        begun, ended = len(reader.calls), reader.ended
        await sending
        assert begun == ended
        await mine.queue.detach(*mine.pair)
        assert len(reader.calls) == begun, "a handler started after the drain was over"
        await mine.queue.stop()
    rest = await desk.subscribe()
    await desk.flows(rest)
    await desk.emptied()


@CASES.case(72)
async def wait_for_handlers_answers_on_a_stopped_queue(bench: Bench) -> None:
    """As it does before the start."""
    desk = await bench.desk()
    idle = await bench.queue(started=False)
    assert await idle.wait_for_handlers(0.05) == idle.in_flight_count == 0
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.queue.stop()
    assert await desk.queue.wait_for_handlers(0.05) == desk.queue.in_flight_count == 0


@CASES.case(72)
async def a_drain_ends_what_runs_and_leaves_the_rest(bench: Bench) -> None:
    """Pause, wait, stop: the handler's outcome counts, and nothing else was handed out."""
    desk = await bench.desk()
    reader = Reader()
    reader.hold("a")
    await desk.subscribe_batch(reader)
    await desk.send("a", key="a")
    await reader.until("a")
    await desk.send("b", key="b")
    await desk.queue.pause_delivery()
    assert await desk.queue.wait_for_handlers(0.05) == 1
    reader.release("a")
    assert await desk.queue.wait_for_handlers(10.0) == 0
    await desk.queue.stop()
    peer = await desk.peer()
    second = await peer.subscribe()
    await second.until("b")
    assert (reader.names, second.names) == (["a"], ["b"])
    assert second.headrooms("b") == [24]
