"""Cases: acknowledged, failed, deferred - what comes back, when, in which place, how often."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Final

from actors.delivery import BUDGET, Defer, Nak
from actors.machines.budget import Backoff
from crewlet.events import decode
from crewlet.testing.conformance.harness import pass_time
from crewlet.testing.conformance.queue.bench import Bench
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import Reader, Said

CASES: Final = Table()

UNHURRIED: Final = Backoff(first_s=0.4, longest_s=0.4)
"""Long enough that what waits is certainly taken first."""

FOR_GOOD: Final = Defer("not mine", retry_after_s=3600.0)


@CASES.case(36, 45, 51)
async def handler_failure_triggers_redelivery(bench: Bench) -> None:
    """Raised or answered, a failure brings the message again; the reader lives on."""
    desk = await bench.desk()
    reader = Reader({"a": [RuntimeError("planted"), Nak("planted")]})
    await desk.subscribe(reader)
    await desk.send("a")
    await reader.until("a", "a", "a")
    assert reader.headrooms("a") == [24, 23, 22]
    await desk.flows(reader)
    await desk.emptied()
    assert reader.names == ["a", "a", "a", "control"]


@CASES.case(47)
async def a_publishers_cancellation_never_reaches_a_handler(bench: Bench) -> None:
    """The publisher's task is cancelled and its client stopped: the handler goes on."""
    desk = await bench.desk()
    reader = Reader()
    reader.hold("a")
    await desk.subscribe(reader)
    peer = await desk.peer()

    async def say() -> None:
        await peer.send("a")
        await asyncio.Event().wait()

    saying = asyncio.create_task(say())
    await reader.until("a")
    saying.cancel()
    await peer.queue.stop()
    await bench.silence()
    assert reader.ended == 0
    reader.release("a")
    await reader.until_ended(1)
    await desk.emptied()
    assert reader.names == ["a"]


@CASES.case(38)
async def a_failure_returns_behind_waiting_mail(bench: Bench) -> None:
    """What was waiting when it failed is worked while its backoff runs."""
    desk = await bench.desk(backoff=UNHURRIED)
    reader = Reader({"a": [Nak("planted")]})
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a", "b", "c")
    await reader.until("a")
    reader.release("a")
    await reader.until("a", "a", "b", "c")
    assert reader.names == ["a", "b", "c", "a"]


@CASES.case(38)
async def a_newer_message_of_the_conversation_overtakes_a_failed_one(bench: Bench) -> None:
    """Nothing orders two calls: the newer one runs alone, the failed one follows."""
    desk = await bench.desk(backoff=UNHURRIED)
    reader = Reader({"a": [Nak("planted")]})
    reader.hold("a")
    await desk.subscribe_batch(reader)
    await desk.send("a", key="k")
    await reader.until("a")
    await desk.send("b", key="k")
    reader.release("a")
    await reader.until("a", "a", "b")
    assert reader.batches == [["a"], ["b"], ["a"]]


@CASES.case(39)
async def a_deferral_returns_at_the_head(bench: Bench) -> None:
    """Before all mail that waits, as soon as the reader goes on."""
    desk = await bench.desk()
    reader = Reader({"a": [Defer("not now", retry_after_s=0.05)]})
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a", "b", "c")
    await reader.until("a")
    reader.release("a")
    await reader.until("a", "a", "b", "c")
    assert reader.names == ["a", "a", "b", "c"]


@CASES.case(38, 60)
async def redelivery_rotates_across_members(bench: Bench) -> None:
    """A failure is not bound to the member that saw it."""
    one = await bench.desk()
    two = await one.peer()
    fails: list[Said] = [Nak("planted")] * 6
    first, second = Reader({"a": fails}), Reader({"a": fails})
    await one.subscribe(first)
    await two.subscribe(second)
    await one.send("a")
    await one.emptied()
    assert first.names and second.names, "one member saw them all"
    assert sorted(first.headrooms("a") + second.headrooms("a"), key=lambda n: -(n or 0)) == [
        24 - n for n in range(len(first.names) + len(second.names))
    ]


@CASES.case(43, 44, 51)
async def exhausted_redeliveries_dead_letter_the_event(bench: Bench) -> None:
    """After 25 deliveries it is a dead letter with all that it was, and out of the mailbox."""
    desk = await bench.desk()
    reader = Reader({"poison": [Nak("always")] * 40})
    await desk.subscribe(reader)
    (published,) = await desk.send("poison")
    await desk.emptied()
    assert reader.headrooms("poison") == list(range(BUDGET - 1, -1, -1))
    (letter,) = await desk.letters()
    assert (letter.deliveries, letter.reason) == (BUDGET, "always")
    dead = decode(letter.body)
    assert dead == published.event
    assert dead.node == "node-1"
    await desk.flows(reader)
    assert reader.names.count("poison") == BUDGET


@CASES.case(39, 43)
async def a_deferral_on_the_last_delivery_is_a_dead_letter(bench: Bench) -> None:
    """Whoever gives it back and why: the budget is spent."""
    desk = await bench.desk()
    fails: list[Said] = [Nak("planted")] * (BUDGET - 1)
    reader = Reader({"a": [*fails, Defer("too late", retry_after_s=0.0)]})
    await desk.subscribe(reader)
    await desk.send("a")
    await desk.emptied()
    assert len(reader.names) == BUDGET
    (letter,) = await desk.letters()
    assert letter.reason == "too late"
    await desk.flows(reader)


@CASES.case(51, 54)
async def a_handler_is_told_how_many_deliveries_are_left(bench: Bench) -> None:
    """The count rides on the message, through failures, deferrals and a change of hands."""
    desk = await bench.desk()
    reader = Reader({"a": [RuntimeError("planted"), Nak("planted"), FOR_GOOD]})
    await desk.subscribe(reader)
    await desk.send("a")
    await reader.until("a", "a", "a")
    await reader.until_ended(3)
    await desk.queue.stop()
    heir = await desk.peer()
    second = await heir.subscribe()
    await second.until("a")
    assert reader.headrooms("a") + second.headrooms("a") == [24, 23, 22, 21]
    assert second.calls[0].headroom == 21


@CASES.case(39, 66)
async def defer_delivery_leaves_the_event_and_stops_consuming(bench: Bench) -> None:
    """The reader quiesces itself: all mail stays, until somebody lets it go on."""
    desk = await bench.desk()
    reader = Reader({"a": [FOR_GOOD]})
    await desk.subscribe(reader)
    await desk.send("a")
    await reader.until_ended(1)
    await desk.send("b")
    await bench.silence()
    assert reader.names == ["a"]
    assert await desk.queue.unquiesce(*desk.pair) is True
    await reader.until("a", "a", "b")
    assert reader.names == ["a", "a", "b"]
    assert await desk.queue.unquiesce(*desk.pair) is False


@CASES.case(39)
async def a_deferral_ends_by_itself(bench: Bench) -> None:
    """After the time that it named, and not before."""
    desk = await bench.desk()
    reader = Reader({"a": [Defer("later", retry_after_s=0.5)]})
    await desk.subscribe(reader)
    await desk.send("a")
    await reader.until("a", "a")
    assert 0.45 <= reader.at[1] - reader.at[0] <= 0.55 + bench.slack_s


@CASES.case(40)
async def a_deferral_spends_one_delivery(bench: Bench) -> None:
    """A hand-over is not free, and costs no more than one, also where a peer takes it."""
    one = await bench.desk()
    two = await one.peer()
    first, second = Reader({"a": [FOR_GOOD]}), Reader()
    await one.subscribe(first)
    await one.send("a")
    await first.until_ended(1)
    await two.subscribe(second)
    await second.until("a")
    assert (first.headrooms("a"), second.headrooms("a")) == ([24], [23])
    await two.emptied()
    assert first.names == second.names == ["a"]


@CASES.case(46)
async def what_cannot_be_read_is_dropped(bench: Bench) -> None:
    """It is settled and reported, never handed to anybody, and no dead letter."""
    desk = await bench.desk()
    client = await bench.client()
    for body in (b"{", b"[]", b"\xff", b'{"id": "x"}'):
        await client.publish(desk.topic, body, message_id=f"{desk.topic}/{body!r}")
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.emptied()
    assert reader.names == ["control"]
    assert await desk.letters() == []


@CASES.case(37, needs="virtual_time")
async def a_backoff_doubles_to_half_a_minute(bench: Bench) -> None:
    """1 s, doubled by each failure; a hand-over is nobody's failure."""
    desk = await bench.desk(backoff=Backoff())
    fails: list[Said] = [Nak("planted")] * 7
    reader = Reader({"a": [*fails[:1], Defer("moved", retry_after_s=0.0), *fails[1:]]})
    await desk.subscribe(reader)
    await desk.send("a")
    await pass_time(120)
    await desk.emptied()
    gaps = [round(after - before, 1) for before, after in pairwise(reader.at)]
    assert gaps == [1, 0, 2, 4, 8, 16, 30, 30]
