"""Cases: what is published reaches each group once, and waits for it where nobody reads."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.delivery import Mailbox
from actors.ports import NoMailbox
from crewlet import topics
from crewlet.testing.conformance.queue.bench import Bench, Desk
from crewlet.testing.conformance.queue.case import Table
from crewlet.testing.conformance.queue.reader import Reader, event, name_of
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


@CASES.case(1, 34, 48)
async def publish_subscribe(bench: Bench) -> None:
    """What was published arrives whole, stamped with its origin, and is settled."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    (published,) = await desk.send("a", key="k")
    await reader.until("a")
    (batch,) = reader.calls
    assert batch.event == published.event
    assert batch.event.node == "node-1"
    assert (batch.headroom, batch.headrooms) == (24, {batch.event.id: 24})
    await desk.emptied()


@CASES.case(34)
async def an_ordinary_subscription_takes_one_at_a_time(bench: Bench) -> None:
    """Nothing is taken ahead of the handler: the rest stays in the mailbox."""
    desk = await bench.desk()
    reader = Reader()
    reader.hold("a")
    await desk.subscribe(reader)
    await desk.send("a", "b", "c")
    await reader.until("a")
    await desk.settled_to(waiting=2, in_flight=1)
    reader.release("a")
    await reader.until("a", "b", "c")
    assert reader.batches == [["a"], ["b"], ["c"]]
    await desk.emptied()


@CASES.case(16)
async def multiple_subscribers_different_topics(bench: Bench) -> None:
    """Two topics on one client do not mix."""
    one = await bench.desk()
    two = Desk(bench, one.queue, topics.inbox_of(bench.name()))
    first, second = await one.subscribe(), await two.subscribe()
    await one.send("a")
    await two.send("b")
    await first.until("a")
    await second.until("b")
    await one.emptied()
    await two.emptied()
    assert (first.names, second.names) == (["a"], ["b"])


@CASES.case(60)
async def multiple_groups_receive_same_event(bench: Bench) -> None:
    """Each group of a topic has a copy of its own."""
    one = await bench.desk()
    two = one.sibling("two")
    first, second = await one.subscribe(), await two.subscribe()
    await one.send("a", "b")
    await first.until("a", "b")
    await second.until("a", "b")
    assert first.names == second.names == ["a", "b"]


@CASES.case(23, 61)
async def distinct_pairs_never_share_a_subscription(bench: Bench) -> None:
    """Pairs that a rewrite of dots to underscores would merge stay two."""
    queue, name = await bench.queue(), bench.name()
    topic = topics.event(f"{name}.x")
    dotted = Desk(bench, queue, Mailbox(topic, f"{name}.y"))
    scored = Desk(bench, queue, Mailbox(topic, f"{name}_y"))
    first, second = await dotted.subscribe(), await scored.subscribe()
    await dotted.send("a")
    await first.until("a")
    await second.until("a")
    assert await queue.delete(*dotted.pair) is True
    await scored.flows(second)
    assert first.names == ["a"]


@CASES.case(60)
async def consumer_group_competing(bench: Bench) -> None:
    """Of two members of a group each message reaches one, and nothing is left over."""
    one = await bench.desk()
    two = await one.peer()
    first, second = await one.subscribe(), await two.subscribe()
    wanted = [f"{n:02}" for n in range(20)]
    await one.send(*wanted)
    await one.emptied()
    assert sorted(first.names + second.names) == wanted


@CASES.case(34, 60)
async def members_of_a_group_compete(bench: Bench) -> None:
    """While one member works, what follows is the other's."""
    one = await bench.desk()
    two = await one.peer()
    reader = Reader()
    for name in "ab":
        reader.hold(name)
    await one.subscribe(reader)
    await two.subscribe(reader)
    await one.send("a", "b")
    await reader.until("a", "b")
    assert (one.queue.in_flight_count, two.queue.in_flight_count) == (1, 1)
    reader.release("a")
    reader.release("b")
    await one.emptied()
    assert reader.names in (["a", "b"], ["b", "a"])


@CASES.case(58)
async def subscribe_after_start(bench: Bench) -> None:
    """A subscription may come at any time, and makes its own mailbox."""
    desk = await bench.desk(ensured=False)
    assert await desk.state() is None
    reader = await desk.subscribe()
    await desk.flows(reader)
    other = Desk(bench, desk.queue, topics.inbox_of(bench.name()))
    await other.flows(await other.subscribe())
    assert await desk.queue.ensure(*desk.pair) is False


@CASES.case(58, 133)
async def an_unowned_subscription_holds_its_mail(bench: Bench) -> None:
    """A mailbox that nobody reads keeps what comes, in order, also when its maker is gone."""
    desk = await bench.desk()
    await desk.send("a", "b", "c")
    await desk.queue.stop()
    heir = await desk.peer()
    await heir.settled_to(waiting=3, in_flight=0)
    reader = await heir.subscribe()
    await reader.until("a", "b", "c")
    assert reader.names == ["a", "b", "c"]


@CASES.case(27)
async def publishing_to_no_subscription_retains_nothing(bench: Bench) -> None:
    """Such a publish succeeds; whoever subscribes later never sees it. At a seat it is refused."""
    seat = await bench.desk(ensured=False)
    async with raises(NoMailbox):
        await seat.send("refused")
    assert await seat.state() is None
    name = bench.name()
    desk = Desk(bench, seat.queue, Mailbox(topics.event(name), name))
    await desk.send("before")
    reader = await desk.subscribe()
    await desk.flows(reader)
    await bench.silence()
    assert reader.names == ["control"]


@CASES.case(58)
async def ensure_subscription_reports_creation(bench: Bench) -> None:
    """True for the call that made it; false afterwards, whichever node says it again. Of two
    that race at least one has made it: a broker may not tell which."""
    desk = await bench.desk(ensured=False)
    peer = await desk.peer()
    asked = await asyncio.gather(*(one.queue.ensure(*desk.pair) for one in (desk, peer)))
    assert True in asked
    for one in (desk, peer):
        assert await one.queue.ensure(*desk.pair) is False
    state = await desk.state()
    assert state is not None and state.waiting == state.in_flight == 0


@CASES.case(69)
async def delete_subscription_discards_retained_mail(bench: Bench) -> None:
    """The mail goes with the mailbox; one of the same name begins empty."""
    desk = await bench.desk()
    await desk.send("a", "b")
    await desk.settled_to(waiting=2)
    assert await desk.queue.delete(*desk.pair) is True
    assert await desk.queue.delete(*desk.pair) is False
    reader = await desk.subscribe()
    await desk.flows(reader)
    await bench.silence()
    assert reader.names == ["control"]


@CASES.case(48)
async def the_same_event_published_twice_is_stored_once(bench: Bench) -> None:
    """A publish is repeated under its id until it is known; the mailbox has it once."""
    desk = await bench.desk()
    reader = await desk.subscribe()
    once = event(desk.topic, "a")
    first = await desk.queue.publish(desk.topic, once)
    again = await desk.queue.publish(desk.topic, once)
    assert (first.receipt.duplicate, again.receipt.duplicate) == (False, True)
    await desk.flows(reader)
    assert reader.names == ["a", "control"]
    assert name_of(first.event) == "a"
