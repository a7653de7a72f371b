"""The queue over the twin: stamped, stored, told - and unknown is not failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from actors.delivery import Mailbox
from actors.ports import PUBLISH_S, NoMailbox, NotLive, Receipt, TooLarge, Unavailable
from crewlet import topics
from crewlet.errors import PublishUnknown
from crewlet.events import Event, Trace, decode
from crewlet.events.envelope import MAX_EVENT_BYTES
from crewlet.queue import Publisher
from crewlet.testing import MemoryBroker, MemoryClient, run_virtual

START = datetime(2026, 3, 1, tzinfo=UTC)
BOX = topics.inbox_of("dev")


class LoopClock:
    """The loop's own time, as a wall clock too."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())


def event(id: str = "e1", event_type: str = "task_assigned", **more: Any) -> Event:
    return Event.new(event_type, id=id, at=START, trace=Trace.root(), **more)


class Bench:
    """A twin with one client, its queue, and all that the listeners heard."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.client = self.broker.client("n1")
        self.queue = Publisher(self.client, node_id="n1", clock=LoopClock())
        self.heard: list[tuple[str, Event]] = []
        self.queue.add_listener(lambda topic, event: self.heard.append((topic, event)))

    async def stored(self, mailbox: Mailbox = BOX) -> list[Event]:
        attachment = await self.client.attach(mailbox, 1)
        deliveries = await self.client.fetch(attachment, 100, 0.0)
        return [decode(delivery.body) for delivery in deliveries]


def on_the_twin(play: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.client.start()
        await bench.client.ensure(BOX)
        await play(bench)

    run_virtual(main)


@pytest.mark.certifies(48, 175, 207)
def test_an_event_is_stamped_on_a_copy_stored_and_told() -> None:
    async def play(bench: Bench) -> None:
        made = event()
        published = await bench.queue.publish(BOX.topic, made)
        assert made.node == ""
        assert published.event.node == "n1"
        assert published.receipt == Receipt(position=1)
        assert bench.heard == [(BOX.topic, published.event)]
        assert await bench.stored() == [published.event]

    on_the_twin(play)


@pytest.mark.certifies(175)
def test_an_origin_is_never_written_over() -> None:
    async def play(bench: Bench) -> None:
        relayed = event().stamped("far-away")
        assert (await bench.queue.publish(BOX.topic, relayed)).event is relayed

    on_the_twin(play)


@pytest.mark.certifies(207)
def test_listeners_hear_after_the_broker_has_the_event_and_not_before() -> None:
    async def play(bench: Bench) -> None:
        waiting: list[int] = []
        box = bench.broker.mailbox(BOX)
        bench.queue.add_listener(lambda topic, event: waiting.append(box.state.waiting))
        await bench.queue.publish(BOX.topic, event())
        bench.broker.down = True
        with pytest.raises(PublishUnknown):
            await bench.queue.publish(BOX.topic, event("e2"), within_s=1.0)
        assert waiting == [1]

    on_the_twin(play)


@pytest.mark.certifies(207)
@pytest.mark.parametrize("failure", [RuntimeError("boom"), asyncio.CancelledError()])
def test_what_a_listener_raises_stays_with_it(failure: BaseException) -> None:
    async def play(bench: Bench) -> None:
        def failing(topic: str, event: Event) -> None:
            raise failure

        after: list[str] = []
        bench.queue.add_listener(failing)
        bench.queue.add_listener(lambda topic, event: after.append(event.id))
        published = await bench.queue.publish(BOX.topic, event())
        assert published.receipt.position == 1
        assert after == ["e1"]

    on_the_twin(play)


@pytest.mark.certifies(208)
def test_listeners_hear_what_no_mailbox_covers() -> None:
    async def play(bench: Bench) -> None:
        await bench.queue.publish(topics.event("nobody"), event())
        with pytest.raises(NoMailbox):
            await bench.queue.publish(topics.inbox("nobody"), event())
        assert [topic for topic, _ in bench.heard] == [topics.event("nobody")]

    on_the_twin(play)


# -- unknown --------------------------------------------------------------------------


class Forgetful(MemoryClient):
    """Stores what is published and loses the answer, as often as it is told to."""

    lost = 0
    ids: list[str]

    async def publish(
        self, topic: str, body: bytes, *, message_id: str, within_s: float = PUBLISH_S
    ) -> Receipt:
        self.ids.append(message_id)
        receipt = await super().publish(topic, body, message_id=message_id)
        if self.lost:
            self.lost -= 1
            raise Unavailable("the answer was lost")
        return receipt


@pytest.mark.certifies(48)
@pytest.mark.parametrize("message_id", ["", "m1"])
def test_a_lost_answer_is_asked_for_again_under_the_same_id(message_id: str) -> None:
    async def play(bench: Bench) -> None:
        client = Forgetful(bench.broker, "n2")
        client.lost, client.ids = 3, []
        await client.start()
        queue = Publisher(client, node_id="n2", clock=LoopClock())
        queue.add_listener(lambda topic, event: bench.heard.append((topic, event)))
        published = await queue.publish(BOX.topic, event(), message_id=message_id)
        assert client.ids == [message_id or "e1"] * 4
        assert published.receipt == Receipt(position=1, duplicate=True)
        assert len(bench.heard) == len(await bench.stored()) == 1

    on_the_twin(play)


@pytest.mark.certifies(48, 50)
def test_a_publish_waits_for_a_broker_that_comes_back() -> None:
    async def play(bench: Bench) -> None:
        bench.broker.down = True
        publishing = asyncio.ensure_future(bench.queue.publish(BOX.topic, event()))
        await asyncio.sleep(12.0)
        assert not publishing.done()
        bench.broker.down = False
        await publishing
        assert asyncio.get_running_loop().time() < 15.0
        assert len(await bench.stored()) == 1

    on_the_twin(play)


@pytest.mark.certifies(50)
def test_after_the_deadline_it_is_unknown_under_an_id_that_can_be_tried_again() -> None:
    async def play(bench: Bench) -> None:
        bench.broker.down = True
        with pytest.raises(PublishUnknown) as raised:
            await bench.queue.publish(BOX.topic, event(), within_s=5.0)
        assert raised.value.message_id == "e1"
        assert 3.0 <= asyncio.get_running_loop().time() <= 5.0
        assert bench.heard == []

    on_the_twin(play)


@pytest.mark.certifies(50, 71)
def test_a_client_that_has_stopped_is_no_broker_that_does_not_answer() -> None:
    async def play(bench: Bench) -> None:
        await bench.client.stop()
        with pytest.raises(NotLive):
            await bench.queue.publish(BOX.topic, event())
        assert asyncio.get_running_loop().time() == 0.0
        assert bench.heard == []

    on_the_twin(play)


@pytest.mark.certifies(48)
def test_after_a_lost_answer_a_stopped_client_does_not_say_that_nothing_happened() -> None:
    """NotLive means that the verb changed nothing; the first try may have stored the event."""

    async def play(bench: Bench) -> None:
        client = Forgetful(bench.broker, "n2")
        client.lost, client.ids = 1, []
        await client.start()
        queue = Publisher(client, node_id="n2", clock=LoopClock())
        publishing = asyncio.ensure_future(queue.publish(BOX.topic, event()))
        await asyncio.sleep(0.1)
        await client.stop()
        with pytest.raises(PublishUnknown) as raised:
            await publishing
        assert raised.value.message_id == "e1"
        assert len(await bench.stored()) == 1

    on_the_twin(play)


@pytest.mark.certifies(49)
def test_an_event_that_is_too_large_is_refused_before_anything_is_sent() -> None:
    async def play(bench: Bench) -> None:
        room = MAX_EVENT_BYTES - len(event(body={"text": ""}).id) - 1000
        await bench.queue.publish(BOX.topic, event(body={"text": "x" * room}))
        bench.broker.down = True  # it would not even be asked
        with pytest.raises(TooLarge, match=f"takes {MAX_EVENT_BYTES}"):
            await bench.queue.publish(BOX.topic, event("e2", body={"text": "x" * MAX_EVENT_BYTES}))
        assert [told.id for _, told in bench.heard] == ["e1"]

    on_the_twin(play)


# -- the record -----------------------------------------------------------------------


@pytest.mark.certifies(20)
def test_a_record_goes_onto_the_topic_of_its_type() -> None:
    async def play(bench: Bench) -> None:
        await bench.queue.record(event(event_type="turn.guard_breach"))
        assert [topic for topic, _ in bench.heard] == [topics.event("turn.guard_breach")]
        assert len(await bench.client.recent(topics.EVENTS, 9)) == 1

    on_the_twin(play)


@pytest.mark.parametrize(
    ("down", "stopped", "recorded"),
    [
        (True, False, event()),
        (False, True, event()),
        (False, False, event(event_type="no topic")),
        (False, False, event(event_type="a.>")),
        (False, False, event(event_type="x" * 300)),
        (False, False, event("\ud800")),
        (False, False, event(body={"text": "x" * MAX_EVENT_BYTES})),
    ],
    ids=["down", "stopped", "space", "wildcard", "long", "surrogate", "large"],
)
def test_a_record_that_cannot_be_kept_holds_nobody_up(
    down: bool, stopped: bool, recorded: Event
) -> None:
    async def play(bench: Bench) -> None:
        bench.broker.down = down
        if stopped:
            await bench.client.stop()
        await bench.queue.record(recorded)
        assert asyncio.get_running_loop().time() <= 10.0
        assert bench.heard == []

    on_the_twin(play)


def test_flush_waits_for_what_goes_on_behind_the_callers_back() -> None:
    async def play(bench: Bench) -> None:
        assert await bench.queue.flush(0.0)
        bench.queue.record_soon(event("e1"))
        bench.queue.record_soon(event("e2"))
        assert bench.heard == []
        assert await bench.queue.flush(5.0)
        assert [told.id for _, told in bench.heard] == ["e1", "e2"]

    on_the_twin(play)


def test_flush_gives_up_at_its_bound_and_says_so() -> None:
    async def play(bench: Bench) -> None:
        bench.broker.down = True
        bench.queue.record_soon(event())
        assert not await bench.queue.flush(3.0)
        assert asyncio.get_running_loop().time() == 3.0
        bench.broker.down = False
        await asyncio.sleep(60.0)
        assert bench.heard == []  # it was cancelled, not left to itself
        assert await bench.queue.flush(0.0)

    on_the_twin(play)


@pytest.mark.certifies(46, 209)
def test_a_subscriber_sees_what_matches_from_now_on_and_no_corrupt_bytes() -> None:
    async def play(bench: Bench) -> None:
        seen: list[str] = []
        await bench.queue.record(event("before"))
        subscription = await bench.queue.subscribe_stream(
            topics.EVENTS, lambda topic, event: seen.append(event.id)
        )
        await bench.client.publish(topics.event("x"), b"{corrupt", message_id="m")
        await bench.queue.record(event("after"))
        await bench.queue.publish(BOX.topic, event("elsewhere"))
        await subscription.close()
        await bench.queue.record(event("late"))
        assert seen == ["after"]

    on_the_twin(play)
