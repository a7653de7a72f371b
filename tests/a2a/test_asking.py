"""A question, its answer and its end: on a whole node, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crewlet import topics
from crewlet.errors import AskRefused
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.a2a import A2AChannelClosed, A2AChannelOpened, A2AMessageSent
from crewlet.turn import Ack, Suspend, Turn
from tests.a2a.scene import Scene, asks_ops, is_task


async def answers(_: Turn) -> str:
    await asyncio.sleep(30.0)
    return "yes, ship it"


@pytest.mark.certifies(116, 122, 157, 213, 214, 218, 220)
def test_one_question_one_answer_and_the_channel_closes() -> None:
    scene = Scene(dev=asks_ops, ops=answers)

    async def play() -> None:
        sent = await scene.first.node.send("dev", "is 1.2 fit to go?", sender="boss")
        await scene.until_closed()
        await scene.until(lambda: len(scene.turns) == 3)
        task, question, message = scene.turns
        channel = await scene.channel()
        assert [t.seat.handle for t in scene.turns] == ["dev", "ops", "dev"]
        (asked,), (answered,) = question.events, message.events
        assert (asked.type, asked.sender, asked.body) == ("a2a_request", "dev", task.text)
        assert question.conversation.partition_key == ""
        assert (answered.type, answered.sender, answered.body) == (
            "a2a_message",
            "ops",
            "yes, ship it",
        )
        assert answered.metadata["question"] == task.text
        assert answered.metadata["channel_id"] == asked.metadata["channel_id"] == channel.id
        (to_ops, request), (to_dev, reply) = scene.wakes
        assert (to_ops, to_dev) == (topics.inbox("ops"), topics.inbox("dev"))
        assert (request.delegation_depth, request.delegation_chain) == (1, ("dev",))
        assert (reply.delegation_depth, reply.delegation_chain) == (1, ("dev", "ops"))
        assert request.parent_turn_id == task.turn_id and reply.parent_turn_id == question.turn_id
        assert {request.trace.trace_id, reply.trace.trace_id} == {sent.event.trace.trace_id}
        await _the_record(scene, task, question)

    scene.play(play)


async def _the_record(scene: Scene, task: Turn, question: Turn) -> None:
    (opened,) = await scene.recorded(types.A2A_CHANNEL_OPENED)
    first, second = await scene.recorded(types.A2A_MESSAGE_SENT)
    (closed,) = await scene.recorded(types.A2A_CHANNEL_CLOSED)
    channel = await scene.channel()
    body = opened.read(A2AChannelOpened)
    assert (body.requester, body.target, body.turn_id) == ("dev", "ops", task.turn_id)
    texts = [one.read(A2AMessageSent) for one in (first, second)]
    assert [(t.sender, t.recipient, t.text) for t in texts] == [
        ("dev", "ops", task.text),
        ("ops", "dev", "yes, ship it"),
    ]
    end = closed.read(A2AChannelClosed)
    assert (end.participants, end.messages, end.closed_by) == (("dev", "ops"), 2, "ops")
    assert (end.turn_id, len(end.work_key), end.reason) == (question.turn_id, 32, "")
    assert end.duration_s == (end.closed_at - end.opened_at).total_seconds() == 30.0
    assert (end.opened_at, end.closed_at) == (channel.opened_at, channel.closed_at)
    assert closed.summary == "ops closed A2A channel"
    assert channel.state == "closed" and channel.brief == "" and channel.reply is not None
    assert channel.reply.text == "", "what was said is in the events, and not kept twice"


@pytest.mark.certifies(214)
@pytest.mark.parametrize("answer", [None, "", Ack(), Ack("")])
def test_an_empty_answer_is_one(answer: Any) -> None:
    async def says_nothing(_: Turn) -> Any:
        return answer

    scene = Scene(dev=asks_ops, ops=says_nothing)

    async def play() -> None:
        await scene.first.node.send("dev", "anything?")
        await scene.until(lambda: len(scene.of("dev")) == 2)
        (answered,) = scene.of("dev")[1].events
        assert (answered.body, answered.metadata["failed"]) == ("", False)

    scene.play(play)


# -- what is refused ------------------------------------------------------------------


@pytest.mark.certifies(217)
@pytest.mark.parametrize(
    ("handle", "brief", "said"),
    [
        ("boss", "sign this", "'boss' is a human, whom no turn wakes; you may ask: ops"),
        ("nobody", "hello", "'nobody' is no seat of this company; you may ask: ops"),
        ("dev", "hello me", "dev would ask itself: do it in this turn"),
        ("ops", " \n", "the question is empty: say what you want to know"),
        ("ops", "x" * (1024 * 1024 + 1), "the question is longer than 1048576 bytes"),
    ],
    ids=["a human", "unknown", "oneself", "nothing", "too much"],
)
def test_what_may_not_be_asked_is_refused_with_the_way_out(
    handle: str, brief: str, said: str
) -> None:
    refusals: list[AskRefused] = []

    async def asks(turn: Turn) -> Any:
        try:
            return await turn.ask(handle, brief)
        except AskRefused as error:
            refusals.append(error)
            raise

    scene = Scene(dev=asks)

    async def play() -> None:
        await scene.first.node.send("dev", "go")
        await asyncio.sleep(120.0)
        (refusal,) = refusals
        assert (refusal.code, refusal.blame) == ("ask_refused", "caller")
        assert str(refusal).startswith(said)
        (completed,) = await scene.recorded(types.AGENT_TURN_COMPLETED)
        assert completed.value("outcome", str, "") == "ack", "again would be refused again"
        assert completed.value("answer", str, "").startswith(said)
        assert await scene.channels() == [] and scene.wakes == []

    scene.play(play)


@pytest.mark.certifies(217)
def test_a_seat_without_a_mailbox_cannot_be_asked() -> None:
    scene = Scene(dev=asks_ops)

    async def play() -> None:
        await scene.first.one("seat.delete", handle="ops", yes="ops")
        await scene.first.node.send("dev", "go")
        await scene.until_closed()
        (completed,) = await scene.recorded(types.AGENT_TURN_COMPLETED)
        assert "ops has no mailbox" in completed.value("answer", str, "")
        channel = await scene.channel()
        assert (channel.count, channel.closed_by) == (1, "")
        assert "ops has no mailbox" in channel.reason
        assert len(scene.turns) == 1 and scene.wakes == [], "the asking turn was told; no wake"

    scene.play(play)


@pytest.mark.certifies(217, 218)
@pytest.mark.field("C43")
def test_two_seats_that_thank_each_other_end_at_the_cap() -> None:
    refusals: list[str] = []

    async def thanks(turn: Turn) -> Any:
        if turn.events[0].type == types.A2A_REQUEST:
            return "you are welcome"
        other = "ops" if turn.seat.handle == "dev" else "dev"
        try:
            return await turn.ask(other, "thanks")
        except AskRefused as error:
            refusals.append(str(error))
            raise

    scene = Scene(dev=thanks, ops=thanks)

    async def play() -> None:
        await scene.first.node.send("dev", "say thanks")
        await asyncio.sleep(2 * 3600.0)
        assert [turn.seat.handle for turn in scene.turns] == [*["dev", "ops"] * 3, "dev"]
        (refused,) = refusals
        assert refused.startswith("this work was handed on 3 times (dev -> ops -> dev")
        channels = await scene.channels()
        assert len(channels) == 3 and all(one.announced for one in channels)
        assert sorted(one.depth for one in channels) == [1, 2, 3]
        assert await scene.first.node.broker.dead_letters(10) == []

    scene.play(play)


# -- once -----------------------------------------------------------------------------


@pytest.mark.certifies(215)
def test_a_turn_that_runs_again_asks_the_same_question_once() -> None:
    async def fails_after_it_asked(turn: Turn) -> Any:
        if not is_task(turn):
            return "read"
        await turn.ask("ops", f"attempt {turn.attempt}")
        assert turn.attempt > 2, "it fails twice"
        return "asked"

    scene = Scene(dev=fails_after_it_asked, ops=answers)

    async def play() -> None:
        await scene.first.node.send("dev", "go")
        await scene.until_closed()
        await scene.until(lambda: len(scene.of("dev", "a2a_message")) == 1)
        await asyncio.sleep(300.0)
        assert len(scene.of("dev", "task_assigned")) == 3
        (question,) = scene.of("ops")
        assert question.text == "attempt 1"
        assert len(scene.of("dev", "a2a_message")) == 1
        assert len(await scene.recorded(types.A2A_CHANNEL_CLOSED)) == 1

    scene.play(play)


@pytest.mark.certifies(213)
def test_two_questions_of_one_turn_have_two_channels() -> None:
    async def asks_twice(turn: Turn) -> Any:
        if not is_task(turn):
            return "read"
        with pytest.raises(AskRefused):
            await turn.ask("nobody", "one")
        first = await turn.ask("ops", "two")
        return first if await turn.ask("ops", "three") != first else "the same channel"

    scene = Scene(dev=asks_twice)

    async def play() -> None:
        await scene.first.node.send("dev", "go")
        await scene.until(lambda: len(scene.of("dev")) == 3)
        assert sorted(turn.text for turn in scene.of("ops")) == ["three", "two"]

    scene.play(play)


@pytest.mark.certifies(214)
def test_a_turn_that_was_suspended_answers_when_its_last_run_is_over() -> None:
    async def suspends(turn: Turn) -> Any:
        if turn.events[0].type == types.A2A_REQUEST:
            return Suspend("build-1")
        return Suspend("build-2") if turn.text == "built" else f"the tests say: {turn.text}"

    scene = Scene(dev=asks_ops, ops=suspends)

    async def play() -> None:
        node = scene.first.node
        await node.send("dev", "does it pass?")
        for number, result in ((1, "built"), (2, "green")):
            await scene.until(lambda number=number: len(scene.of("ops")) == number)
            await asyncio.sleep(1000.0)
            assert (await scene.channel()).state == "open", "a look at it, and it is not given up"
            await node.runs.completed("ops", f"build-{number}", result)
        await scene.until_closed()
        await scene.until(lambda: len(scene.of("dev")) == 2)
        assert scene.of("dev")[1].text == "the tests say: green"
        (closed,) = await scene.recorded(types.A2A_CHANNEL_CLOSED)
        assert closed.value("turn_id", str, "") == scene.of("ops")[0].turn_id

    scene.play(play)


# -- answers that are not taken -------------------------------------------------------


@pytest.mark.certifies(216)
@pytest.mark.parametrize("channel", ["a2a-0123456789ab", "a2a.*", "", "of dev and boss"])
def test_an_answer_on_no_channel_of_its_own_is_refused_and_its_seat_is_told(channel: str) -> None:
    scene = Scene(dev=asks_ops, ops=answers)

    async def play() -> None:
        node, id = scene.first.node, channel
        if channel == "of dev and boss":
            await node.send("dev", "open one")
            await scene.until_closed()
            id = (await scene.channel()).id
        forged = Event.new(
            types.A2A_REQUEST,
            at=node.clock.now(),
            trace=Trace.root(),
            body={"channel_id": id, "sender": "ops", "text": "?"},
        )
        await node.queue.publish(topics.inbox("dev"), forged)
        await scene.until(lambda: len(scene.of("dev", "a2a_request")) == 1)
        await asyncio.sleep(5.0)
        ends = await scene.recorded(types.AGENT_TURN_COMPLETED)
        (end,) = [one for one in ends if forged.id in one.value("triggers", list, [])]
        assert end.value("outcome", str, "") == "ack"
        assert end.value("reason", str, "").startswith("its answer was not taken: ")
        assert ("was not asked" in end.value("reason", str, "")) is (channel != id)

    scene.play(play)
