"""Cases: letting go, by rising destructiveness - and what a peer does leaves the others alone."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.delivery import Nak
from actors.ports import NoMailbox
from crewlet.testing.conformance.harness import now
from crewlet.testing.conformance.queue.bench import Bench, Desk
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import Reader
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()

ROUNDS: Final = 24
"""Races are run so often, each time a little further apart."""


@CASES.case(35, 67)
async def detach_keeps_the_mailbox_and_its_mail(bench: Bench) -> None:
    """It answers whether there was something to end; what comes waits for the next reader."""
    desk = await bench.desk()
    assert await desk.queue.detach(*desk.pair) is False
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.emptied()
    assert await desk.queue.detach(*desk.pair) is True
    assert await desk.queue.detach(*desk.pair) is False
    await desk.send("a", "b")
    await desk.settled_to(waiting=2, in_flight=0)
    await bench.silence()
    assert reader.names == ["control"]
    again = await desk.subscribe()
    await again.until("a", "b")
    assert again.headrooms("a") == [24]


@CASES.case(67)
async def detach_ends_a_batch_subscription(bench: Bench) -> None:
    """The same for a reader of drains; the next may be of another kind."""
    desk = await bench.desk()
    reader = await desk.subscribe_batch()
    await desk.flows(reader)
    await desk.emptied()
    assert await desk.queue.detach(*desk.pair) is True
    await desk.send("a", "b", key="k")
    await bench.silence()
    assert reader.names == ["control"]
    again = await desk.subscribe()
    await again.until("a", "b")
    assert again.batches == [["a"], ["b"]]


@CASES.case(67)
async def detach_does_not_wait_for_a_handler(bench: Bench) -> None:
    """One that runs is left to run, and its own outcome applies: here, done."""
    desk = await bench.desk()
    reader = Reader()
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a")
    await reader.until("a")
    assert await desk.queue.detach(*desk.pair) is True
    assert reader.ended == 0
    await desk.settled_to(in_flight=1)
    reader.release("a")
    await desk.emptied()


@CASES.case(67)
async def a_failure_after_a_detach_brings_the_message_back(bench: Bench) -> None:
    """The outcome that applies may be a failure: the next reader has the message."""
    desk = await bench.desk()
    reader = Reader({"a": [Nak("planted")]})
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a")
    await reader.until("a")
    await desk.queue.detach(*desk.pair)
    peer = await desk.peer()
    heir = await peer.subscribe()
    reader.release("a")
    await heir.until("a")
    assert heir.headrooms("a") == [23]


@CASES.case(67, 136)
async def detach_releases_the_holds(bench: Bench) -> None:
    """None outlives it: the next attachment begins without."""
    desk = await bench.desk()
    first = await desk.subscribe()
    await desk.queue.hold(*desk.pair, "run")
    await desk.queue.hold(*desk.pair, "no-model")
    assert await desk.queue.detach(*desk.pair) is True
    assert await desk.queue.lift(*desk.pair, "run") is False
    second = await desk.subscribe()
    await desk.flows(second)
    assert first.names == []


@CASES.case(67, 136)
async def detach_of_what_is_held_but_not_attached_is_false(bench: Bench) -> None:
    """There was nothing to end; what was held for a reader to come ends all the same."""
    desk = await bench.desk()
    await desk.queue.hold(*desk.pair, "run")
    assert await desk.queue.detach(*desk.pair) is False
    assert await desk.queue.lift(*desk.pair, "run") is False
    await desk.flows(await desk.subscribe())


@CASES.case(68)
async def no_handler_starts_after_a_detach(bench: Bench) -> None:
    """However the message and the detach cross; whoever attaches next has it."""
    desk = await bench.desk()
    reader = Reader()
    for turns in range(ROUNDS):
        mine = Desk(bench, desk.queue, desk.mailbox)
        await mine.subscribe(reader)
        sending = asyncio.create_task(desk.send(f"{turns:02}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await mine.queue.detach(*mine.pair)
        begun = len(reader.calls)
        await sending
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        assert len(reader.calls) == begun, f"a handler started after the detach ({turns})"
    await desk.subscribe(reader)
    await reader.until(*(f"{turns:02}" for turns in range(ROUNDS)))
    await desk.emptied()
    assert sorted(reader.names) == [f"{turns:02}" for turns in range(ROUNDS)]


@CASES.case(65, 136)
async def no_handler_starts_after_a_brake(bench: Bench) -> None:
    """A hold and a quiesce count from their answer on, however they cross a message."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    for turns in range(ROUNDS):
        sending = asyncio.create_task(desk.send(f"{turns:02}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        if turns % 2:
            await desk.queue.hold(*desk.pair, "run")
        else:
            await desk.queue.quiesce(*desk.pair)
        begun = len(reader.calls)
        await sending
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        assert len(reader.calls) == begun, f"a handler started after the brake ({turns})"
        await desk.queue.lift(*desk.pair, "run")
        await desk.queue.unquiesce(*desk.pair)
        await reader.until(f"{turns:02}")
    await desk.emptied()
    assert reader.names == [f"{turns:02}" for turns in range(ROUNDS)]


@CASES.case(65, 66)
async def quiesce_and_unquiesce(bench: Bench) -> None:
    """Nothing new until it is undone, at no cost to what waits; both say what they found."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    await desk.flows(reader)
    await desk.emptied()
    assert await desk.queue.quiesce(*desk.pair) is True
    assert await desk.queue.quiesce(*desk.pair) is True
    await bench.silence()  # what races a brake comes back, and costs a delivery
    await desk.send("a", "b")
    await desk.settled_to(waiting=2, in_flight=0)
    await bench.silence()
    assert reader.names == ["control"]
    assert await desk.queue.unquiesce(*desk.pair) is True
    assert await desk.queue.unquiesce(*desk.pair) is False
    await reader.until("a", "b")
    assert reader.headrooms("a") == reader.headrooms("b") == [24]


@CASES.case(65)
async def quiesce_lets_the_running_handler_finish(bench: Bench) -> None:
    """Its outcome applies, and nothing follows it."""
    desk = await bench.desk()
    reader = Reader()
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a", "b")
    await reader.until("a")
    assert await desk.queue.quiesce(*desk.pair) is True
    reader.release("a")
    await reader.until_ended(1)
    await desk.settled_to(waiting=1, in_flight=0)
    assert reader.names == ["a"]
    assert await desk.queue.unquiesce(*desk.pair) is True
    await reader.until("b")


@CASES.case(66, 136)
async def unquiesce_leaves_the_holds(bench: Bench) -> None:
    """And lifting a hold leaves the quiesce: each brake is undone by its own verb."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    await desk.queue.quiesce(*desk.pair)
    await desk.queue.hold(*desk.pair, "run")
    assert await desk.queue.unquiesce(*desk.pair) is True
    await desk.send("a")
    await bench.silence()
    assert reader.names == []
    await desk.queue.quiesce(*desk.pair)
    assert await desk.queue.lift(*desk.pair, "run") is True
    await bench.silence()
    assert reader.names == []
    await desk.queue.unquiesce(*desk.pair)
    await reader.until("a")


@CASES.case(68)
async def attaching_again_clears_a_stale_quiesce(bench: Bench) -> None:
    """It was the former attachment's."""
    desk = await bench.desk()
    await desk.subscribe()
    assert await desk.queue.quiesce(*desk.pair) is True
    await desk.queue.detach(*desk.pair)
    reader = await desk.subscribe()
    await desk.flows(reader)
    assert await desk.queue.unquiesce(*desk.pair) is False


@CASES.case(60)
async def a_second_subscription_of_one_client_is_refused(bench: Bench) -> None:
    """A pair has one reader a client; the refusal leaves that one as it was."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    second = Reader()
    try:
        await desk.subscribe(second)
    except ValueError:
        await desk.flows(reader)
        assert second.names == []
        return
    raise AssertionError("a pair was subscribed to twice")


@CASES.case(67)
async def attaching_while_the_old_handler_runs_lets_it_end_first(bench: Bench) -> None:
    """Two calls of one pair never stand beside each other on one client."""
    desk = await bench.desk()
    reader = Reader()
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a", "b")
    await reader.until("a")
    await desk.queue.detach(*desk.pair)
    second = await desk.subscribe()
    await bench.silence()
    assert second.names == []
    reader.release("a")
    await second.until("b")
    await desk.emptied()
    assert reader.names == ["a"]


@CASES.case(11, 65, 67)
async def a_peer_s_detach_and_quiesce_are_its_own(bench: Bench) -> None:
    """The others of the group are served on."""
    one = await bench.desk()
    two = await one.peer()
    first, second = await one.subscribe(), await two.subscribe()
    assert await two.queue.quiesce(*two.pair) is True
    await one.send("a")
    await first.until("a")
    assert await two.queue.detach(*two.pair) is True
    await one.send("b")
    await first.until("b")
    assert second.names == []


@CASES.case(11, 72)
async def a_peer_s_pause_and_stop_are_its_own(bench: Bench) -> None:
    """A drain of one node takes no other along."""
    one = await bench.desk()
    two = await one.peer()
    first, second = await one.subscribe(), await two.subscribe()
    await two.queue.pause_delivery()
    await one.send("a")
    await first.until("a")
    await two.queue.stop()
    await one.send("b")
    await first.until("b")
    await one.emptied()
    assert second.names == []


@CASES.case(69)
async def a_peer_can_delete(bench: Bench) -> None:
    """It needs no attachment of its own. The reader finds nothing more, and may begin anew."""
    one = await bench.desk()
    two = await one.peer()
    first = await one.subscribe()
    await one.flows(first)
    await one.emptied()
    assert await two.queue.delete(*one.pair) is True
    assert await two.state() is None
    async with raises(NoMailbox):
        await two.send("refused")
    assert await one.queue.detach(*one.pair) is True
    second = await one.subscribe()
    await one.flows(second, "anew")
    assert (first.names, second.names) == (["control"], ["anew"])


@CASES.case(69)
async def a_mailbox_that_is_made_again_is_read_again(bench: Bench) -> None:
    """Deleted by a peer and made anew, it finds the reader that never let go of it."""
    one = await bench.desk()
    two = await one.peer()
    reader = await one.subscribe()
    await one.flows(reader)
    await one.emptied()
    assert await two.queue.delete(*one.pair) is True
    assert await two.queue.ensure(*one.pair) is True
    await two.send("a")
    await reader.until("a")
    await two.emptied()


@CASES.case(67, 69)
async def delete_detaches_here_and_ends_the_holds(bench: Bench) -> None:
    """The strongest verb does what the weaker ones do."""
    desk = await bench.desk()
    first = await desk.subscribe()
    await desk.queue.hold(*desk.pair, "run")
    began = now()
    assert await desk.queue.delete(*desk.pair) is True
    assert now() - began < 5.0
    assert await desk.queue.detach(*desk.pair) is False
    second = await desk.subscribe()
    await desk.flows(second)
    assert first.names == []
