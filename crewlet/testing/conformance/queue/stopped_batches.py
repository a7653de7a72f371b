"""Cases: what stops a drain - while it is collected, and between two of its partitions."""

from __future__ import annotations

from typing import Final

from actors.delivery import Defer
from crewlet.testing.conformance.queue.bench import Bench, Desk
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import Reader

CASES: Final = Table()

LONG_S: Final = 60.0


async def _lingering(bench: Bench, linger_s: float = LONG_S) -> tuple[Desk, Reader]:
    """A batch reader that has one message in hand and waits for more."""
    desk = await bench.desk()
    reader = await desk.subscribe_batch(linger_s=linger_s)
    await desk.send("a", key="k")
    await desk.settled_to(waiting=0, in_flight=1)
    await bench.silence()  # the broker counts it out before the reader has it in hand
    return desk, reader


async def _three(bench: Bench, reader: Reader) -> Desk:
    """Three conversations of one drain, the handler standing in the first."""
    desk = await bench.desk()
    for name in "abc":
        await desk.send(name, key=name)
    reader.hold("a")
    await desk.subscribe_batch(reader)
    await reader.until("a")
    await desk.settled_to(waiting=0, in_flight=3)
    return desk


async def _heir_reads(desk: Desk, *names: str) -> Reader:
    """Another node reads these, one by one and in this order."""
    peer = await desk.peer()
    heir = await peer.subscribe()
    await heir.until(*names)
    await peer.emptied()
    assert heir.names == list(names)
    return heir


@CASES.case(74, 83)
async def stop_cancels_a_lingering_drain(bench: Bench) -> None:
    """No call is made of it: its mail goes back before the queue is gone."""
    desk, reader = await _lingering(bench)
    await desk.queue.stop()
    heir = await _heir_reads(desk, "a")
    assert reader.batches == []
    assert heir.headrooms("a") == [23]


@CASES.case(72, 83)
async def pause_during_linger_retains(bench: Bench) -> None:
    """The drain is not flushed past the pause: all of it goes back."""
    desk, reader = await _lingering(bench)
    await desk.queue.pause_delivery()
    heir = await _heir_reads(desk, "a")
    assert reader.batches == []
    assert heir.headrooms("a") == [23]


@CASES.case(83, 136)
async def a_hold_during_linger_is_released_in_place(bench: Bench) -> None:
    """The drain goes back, the reader lives: lifted, it collects anew."""
    desk, reader = await _lingering(bench, linger_s=0.6)
    await desk.queue.hold(*desk.pair, "run")
    await bench.silence()
    await desk.send("b", key="k")
    await bench.silence()
    assert reader.batches == []
    await desk.queue.lift(*desk.pair, "run")
    await reader.until("a", "b")
    assert reader.batches == [["a", "b"]]
    assert (reader.headrooms("a"), reader.headrooms("b")) == ([23], [24])


@CASES.case(67, 83)
async def detach_during_linger_gives_the_drain_back(bench: Bench) -> None:
    """Once it has returned, a peer has the mail at once."""
    desk, reader = await _lingering(bench)
    assert await desk.queue.detach(*desk.pair) is True
    heir = await _heir_reads(desk, "a")
    assert reader.batches == []
    assert heir.headrooms("a") == [23]


@CASES.case(65, 83)
async def quiesce_during_linger_gives_the_drain_back(bench: Bench) -> None:
    """It takes nothing, and keeps nothing in hand."""
    desk, reader = await _lingering(bench)
    assert await desk.queue.quiesce(*desk.pair) is True
    await _heir_reads(desk, "a")
    assert reader.batches == []


@CASES.case(39, 84)
async def a_deferral_stops_the_rest(bench: Bench) -> None:
    """It and all that it left go back in partition order, each for one delivery."""
    reader = Reader({"a": [Defer("not mine", retry_after_s=3600.0)]})
    desk = await _three(bench, reader)
    reader.release("a")
    heir = await _heir_reads(desk, "a", "b", "c")
    assert reader.batches == [["a"]]
    assert [heir.headrooms(name) for name in "abc"] == [[23], [23], [23]]


@CASES.case(84, 136)
async def a_hold_between_partitions_stops_the_rest(bench: Bench) -> None:
    """The call that runs is finished and counts; the others go back, and come again."""
    reader = Reader()
    desk = await _three(bench, reader)
    await desk.queue.hold(*desk.pair, "run")
    reader.release("a")
    await reader.until_ended(1)
    await bench.silence()
    assert reader.batches == [["a"]]
    await desk.queue.lift(*desk.pair, "run")
    await reader.until("b", "c")
    assert reader.batches == [["a"], ["b"], ["c"]]
    assert (reader.headrooms("b"), reader.headrooms("c")) == ([23], [23])


@CASES.case(72, 84)
async def a_pause_between_partitions_stops_the_rest(bench: Bench) -> None:
    """The drain of a client ends with the call that runs."""
    reader = Reader()
    desk = await _three(bench, reader)
    await desk.queue.pause_delivery()
    reader.release("a")
    assert await desk.queue.wait_for_handlers(10.0) == 0
    heir = await _heir_reads(desk, "b", "c")
    assert reader.batches == [["a"]]
    assert (heir.headrooms("b"), heir.headrooms("c")) == ([23], [23])


@CASES.case(67, 84)
async def a_detach_between_partitions_stops_the_rest(bench: Bench) -> None:
    """They go back at once, while the handler still runs; its outcome applies."""
    reader = Reader()
    desk = await _three(bench, reader)
    assert await desk.queue.detach(*desk.pair) is True
    peer = await desk.peer()
    heir = await peer.subscribe()
    await heir.until("b", "c")
    assert reader.ended == 0
    reader.release("a")
    await peer.emptied()
    assert (reader.batches, heir.names) == ([["a"]], ["b", "c"])
    assert (heir.headrooms("b"), heir.headrooms("c")) == ([23], [23])


@CASES.case(84, 85)
async def a_publish_in_the_middle_does_not_move_the_splice(bench: Bench) -> None:
    """What goes back stands before what came meanwhile, however old that says it is."""
    reader = Reader({"a": [Defer("not mine", retry_after_s=3600.0)]})
    desk = await _three(bench, reader)
    await desk.send("d", key="d", at=0.0)
    reader.release("a")
    heir = await _heir_reads(desk, "a", "b", "c", "d")
    assert heir.headrooms("d") == [24]


@CASES.case(11, 84)
async def stop_hands_back_what_it_cuts(bench: Bench) -> None:
    """A handler that still runs is cut; its mail and the rest are a peer's at once, in order."""
    reader = Reader()
    desk = await _three(bench, reader)
    await desk.queue.stop()
    heir = await _heir_reads(desk, "a", "b", "c")
    assert reader.ended == 1
    assert desk.queue.in_flight_count == 0
    assert [heir.headrooms(name) for name in "abc"] == [[23], [23], [23]]
