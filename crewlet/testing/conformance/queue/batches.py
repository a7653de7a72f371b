"""Cases: how a drain is collected, cut into conversations, and ordered."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.delivery import (
    BUDGET,
    MAX_BATCH,
    MAX_LINGER_S,
    BatchOptions,
    Defer,
    Delivery,
    Letter,
    Mailbox,
    Nak,
    Partition,
    headroom,
)
from actors.machines.budget import Backoff
from crewlet.events import Event
from crewlet.testing.conformance.harness import now, pass_time
from crewlet.testing.conformance.queue.bench import Bench
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import Reader, key_of

CASES: Final = Table()


@CASES.case(74, 87)
async def zero_linger_takes_what_is_there(bench: Bench) -> None:
    """Mail that piled up is one call, and nothing is waited for."""
    desk = await bench.desk()
    await desk.send("a", "b", "c", key="k")
    began = now()
    reader = await desk.subscribe_batch()
    await reader.until("a", "b", "c")
    assert reader.at[0] - began <= 0.1 + bench.slack_s
    assert reader.batches == [["a", "b", "c"]]
    await desk.emptied()


@CASES.case(75)
async def a_negative_linger_is_none(bench: Bench) -> None:
    """It is clamped where it is read."""
    desk = await bench.desk()
    await desk.send("a", "b", key="k")
    reader = await desk.subscribe_batch(linger_s=-60.0)
    await reader.until("a", "b")
    assert reader.batches == [["a", "b"]]


@CASES.case(74, 78)
async def linger_coalesces_and_partitions(bench: Bench) -> None:
    """What comes within the linger is of the drain, and is cut by conversation."""
    desk = await bench.desk()
    reader = await desk.subscribe_batch(linger_s=0.5)
    began = now()
    await desk.send("a", key="one")
    await desk.send("b", key="two")
    await desk.send("c", key="one")
    await reader.until("a", "b", "c")
    assert reader.batches == [["a", "c"], ["b"]]
    assert [batch.key for batch in reader.calls] == ["one", "two"]
    assert 0.45 <= reader.at[0] - began <= 0.6 + bench.slack_s


@CASES.case(74)
async def the_linger_counts_from_the_first_message(bench: Bench) -> None:
    """It is fixed: steady inflow does not put the call off."""
    desk = await bench.desk()
    reader = await desk.subscribe_batch(linger_s=0.4)
    began = now()
    for number in range(10):
        await desk.send(f"{number}", key="k")
        await pass_time(0.2)
    await reader.until("9")
    assert reader.at[0] - began <= 0.5 + bench.slack_s
    assert len(reader.batches) >= 2
    assert reader.names == [f"{number}" for number in range(10)]


@CASES.case(76)
async def max_batch_chunks(bench: Bench) -> None:
    """A larger backlog is successive capped drains; a cap below one is one."""
    desk = await bench.desk()
    wanted = [f"{number}" for number in range(7)]
    await desk.send(*wanted, key="k")
    reader = await desk.subscribe_batch(most=3)
    await reader.until(*wanted)
    assert reader.batches == [wanted[:3], wanted[3:6], wanted[6:]]
    await desk.queue.detach(*desk.pair)
    await desk.send("x", "y", key="k")
    single = await desk.subscribe_batch(most=0)
    await single.until("x", "y")
    assert single.batches == [["x"], ["y"]]


@CASES.case(87)
async def a_burst_costs_two_calls(bench: Bench) -> None:
    """The first message wakes the reader; all that comes meanwhile is one more call."""
    desk = await bench.desk()
    reader = Reader()
    await desk.subscribe_batch(reader)
    reader.hold("0")
    await desk.send("0", key="k")
    await reader.until("0")
    await desk.send(*"12345", key="k")
    reader.release("0")
    await reader.until(*"12345")
    assert reader.batches == [["0"], list("12345")]


@CASES.case(51, 52)
async def batch_headroom(bench: Bench) -> None:
    """Each event's own by its id, and the whole batch's."""
    desk = await bench.desk()
    await desk.send("a", "b", key="k")
    reader = Reader({"a": [Defer("not now", retry_after_s=0.0)]})
    await desk.subscribe_batch(reader)
    await reader.until("a", "b", "a", "b")
    first, second = reader.calls
    assert (first.headroom, second.headroom) == (24, 23)
    assert set(second.headrooms) == {event.id for event in second.events}
    assert set(second.headrooms.values()) == {23}


@CASES.case(52, 53, 55)
async def a_batch_at_mixed_counts_reports_each_and_the_smallest(bench: Bench) -> None:
    """One that was handed back before is batched with a fresh one."""
    desk = await bench.desk()
    reader = Reader({"a": [Defer("not now", retry_after_s=3600.0)]})
    await desk.subscribe_batch(reader)
    await desk.send("a", key="k")
    await reader.until_ended(1)
    await desk.send("b", key="k")
    await desk.resume()
    await reader.until("a", "a", "b")
    mixed = reader.calls[-1]
    assert reader.batches == [["a"], ["a", "b"]]
    assert [mixed.headrooms[event.id] for event in mixed.events] == [23, 24]
    assert mixed.headroom == 23


@CASES.case(79)
async def a_partition_is_settled_after_its_own_call(bench: Bench) -> None:
    """One call after the other, and each partition's mail is kept until its call has ended."""
    desk = await bench.desk()
    for name in ("a", "b"):
        await desk.send(name, key=name)
    reader = Reader()
    for name in "ab":
        reader.hold(name)
    await desk.subscribe_batch(reader)
    await reader.until("a")
    await bench.silence()
    assert reader.batches == [["a"]]
    await desk.settled_to(waiting=0, in_flight=2)
    reader.release("a")
    await reader.until("b")
    await desk.settled_to(waiting=0, in_flight=1)
    reader.release("b")
    await desk.emptied()


@CASES.case(80)
async def a_failing_partition_redelivers_only_itself(bench: Bench) -> None:
    """The others of its drain are neither held up nor repeated."""
    desk = await bench.desk()
    await desk.send("a", key="bad")
    await desk.send("b", key="good")
    await desk.send("c", key="bad")
    reader = Reader({"a": [Nak("planted")]})
    await desk.subscribe_batch(reader)
    await desk.emptied()
    assert reader.batches[:2] == [["a", "c"], ["b"]]
    assert sorted(reader.names) == ["a", "a", "b", "c", "c"]
    assert reader.headrooms("c") == [24, 23]


@CASES.case(78)
async def a_key_that_fails_merges_nothing(bench: Bench) -> None:
    """Raised or empty, the event is a conversation of its own."""
    desk = await bench.desk()

    def key(event: Event) -> str:
        if key_of(event) == "raise":
            raise RuntimeError("planted")
        return key_of(event)

    await desk.send("a", "b", key="raise")
    await desk.send("c", "d", key="")
    await desk.send("e", "f", key="k")
    reader = await desk.subscribe_batch(key=key)
    await reader.until(*"abcdef")
    assert reader.batches == [["a"], ["b"], ["c"], ["d"], ["e", "f"]]
    own = {f"event:{batch.event.id}" for batch in reader.calls[:4]}
    assert {batch.key for batch in reader.calls} == {*own, "k"}


@CASES.case(77)
async def live_options(bench: Bench) -> None:
    """They are read once a drain's first message is in hand, and hold for that drain: also
    where the pull that brings it was sent under the old ones."""
    desk = await bench.desk()
    box = [BatchOptions(max_batch=1)]
    reader = Reader()
    await desk.subscribe_batch(reader, options=lambda: box[0])
    reader.hold("a")
    await desk.send("a", key="k")
    await reader.until("a")
    await desk.send(*"bcd", key="k")
    box[0] = BatchOptions(max_batch=3)
    reader.hold("b")
    reader.release("a")
    await reader.until(*"bcd")
    await desk.send(*"efgh", key="k")
    box[0] = BatchOptions(max_batch=2)
    reader.release("b")
    await reader.until(*"efgh")
    assert reader.batches[:3] == [["a"], ["b", "c", "d"], ["e", "f"]]
    assert reader.names == list("abcdefgh")


@CASES.case(76, 77)
async def a_cap_that_shrank_holds_for_a_pull_that_waits(bench: Bench) -> None:
    """A burst that meets a pull of the old size still makes no call above the new one."""
    desk = await bench.desk()
    box = [BatchOptions(max_batch=20)]
    reader = await desk.subscribe_batch(options=lambda: box[0])
    await desk.send("first", key="k")
    await reader.until("first")
    await bench.silence()
    box[0] = BatchOptions(max_batch=2)
    wanted = [f"{number}" for number in range(8)]
    await asyncio.gather(*(desk.send(name, key="k") for name in wanted))
    await reader.until(*wanted)
    assert max(len(batch) for batch in reader.batches) <= 2


@CASES.case(81)
async def an_aged_conversation_goes_first(bench: Bench) -> None:
    """By its oldest message: a hot conversation does not starve one that waits."""
    desk = await bench.desk()
    await desk.send("hot-1", key="hot", at=100)
    await desk.send("old", key="old", at=50)
    await desk.send("hot-2", key="hot", at=10)
    await desk.send("mid", key="mid", at=70)
    reader = await desk.subscribe_batch()
    await reader.until("hot-1", "old", "hot-2", "mid")
    assert reader.batches == [["hot-2", "hot-1"], ["old"], ["mid"]]


@CASES.case(82)
async def a_partition_stands_by_timestamp(bench: Bench) -> None:
    """Whatever the broker's order was; equal times keep it."""
    desk = await bench.desk()
    for name, at in (("late", 30.0), ("early", 10.0), ("same-1", 20.0), ("same-2", 20.0)):
        await desk.send(name, key="k", at=at)
    reader = await desk.subscribe_batch()
    await reader.until("late", "early", "same-1", "same-2")
    assert reader.batches == [["early", "same-1", "same-2", "late"]]


@CASES.case(38, 82)
async def a_redelivered_event_rejoins_in_order(bench: Bench) -> None:
    """It comes behind the newer ones, and stands before them in the batch they share."""
    desk = await bench.desk(backoff=Backoff(first_s=0.3, longest_s=0.3))
    reader = Reader({"a": [Nak("planted")]})
    await desk.subscribe_batch(reader, linger_s=0.9)
    await desk.send("a", key="k")
    await reader.until_ended(1)
    await desk.send("b", "c", key="k")
    await reader.until("a", "a", "b", "c")
    assert reader.batches == [["a"], ["a", "b", "c"]]


@CASES.case(51, 53, 56, 75, 76)
async def the_policy_functions_of_the_contract(bench: Bench) -> None:
    """What every broker is held to is computed in one place."""
    assert [headroom(count) for count in (1, BUDGET - 1, BUDGET, BUDGET + 5)] == [24, 1, 0, 0]
    assert headroom(None) is None
    assert [BatchOptions(max_batch=n).cap for n in (-1, 0, 1, 100, 101)] == [1, 1, 1, 100, 100]
    assert [BatchOptions(linger_s=s).window_s for s in (-1, 0, 60, 61)] == [0, 0, 60, 60]
    assert (MAX_BATCH, MAX_LINGER_S, BatchOptions().cap, BatchOptions().window_s) == (
        *(100, 60, 20, 0),
    )
    counts = (None, 12, 3)
    box = Mailbox("topic", "group")
    letters = tuple(
        Letter(Delivery(box, b"", count, n, ""), f"{n}", "k", None, None)
        for n, count in enumerate(counts)
    )
    assert Partition("k", letters).headroom == BUDGET - 12
    assert Partition("k", letters[:1]).headroom is None


@CASES.case(42, 86, needs="virtual_time")
async def a_drain_that_outlasts_the_ack_window_comes_again(bench: Bench) -> None:
    """Half an hour in one member's hands, then it is anybody's: redelivered, not lost."""
    one = await bench.desk()
    two = await one.peer()
    first, second = Reader(), Reader()
    first.hold("a")
    await one.subscribe_batch(first)
    await one.send("a", "b", key="k")
    await first.until("a", "b")
    await two.subscribe(second)
    await pass_time(1799)
    assert second.names == []
    await pass_time(2)
    await second.until("a", "b")
    first.release("a")
    await one.emptied()
    assert (first.batches, second.names) == ([["a", "b"]], ["a", "b"])
    assert second.headrooms("a") == [23]
