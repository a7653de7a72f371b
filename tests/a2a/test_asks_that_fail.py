"""C26: whoever asks hears the answer, or that none comes, once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors.ports import Unavailable
from crewlet.a2a.answering import Answering
from crewlet.a2a.closing import Closing
from crewlet.company import parse_company
from crewlet.events import catalogue as types
from crewlet.events.a2a import A2AChannelClosed
from crewlet.turn import Suspend, Turn
from tests.a2a.scene import Scene, asks_ops, is_task
from tests.node.operated import COMPANY

HOUR_S = 3600.0


async def _ends(scene: Scene) -> list[A2AChannelClosed]:
    found = await scene.recorded(types.A2A_CHANNEL_CLOSED)
    return [one.read(A2AChannelClosed) for one in found]


async def _told_once(scene: Scene, why: str) -> None:
    """dev is woken with the failure, once in two hours, and the system has closed the channel."""
    (woken,) = scene.of("dev", "a2a_message")
    (event,) = woken.events
    assert why in event.body and event.metadata["failed"] is True
    assert event.metadata["question"] == "go" and event.metadata["target"] == "ops"
    (end,) = await _ends(scene)
    assert (end.closed_by, end.turn_id, end.work_key, end.messages) == ("", "", "", 1)
    assert why in end.reason and end.participants == ("dev", "ops")
    (closed,) = await scene.recorded(types.A2A_CHANNEL_CLOSED)
    assert closed.summary == "system closed A2A channel" and closed.actor == "system"


@pytest.mark.certifies(219, 220)
@pytest.mark.field("C26")
def test_a_question_that_becomes_a_dead_letter_wakes_the_asker_once() -> None:
    async def fails(_: Turn) -> Any:
        raise RuntimeError("exit 1")

    scene = Scene(dev=asks_ops, ops=fails)

    async def play() -> None:
        node = scene.first.node
        await node.send("dev", "go")
        await scene.until(lambda: node.broker.dead_letters(1), HOUR_S)
        await asyncio.sleep(15.0)
        await _told_once(scene, "it became a dead letter")
        assert "exit 1" in scene.of("dev")[-1].text
        await asyncio.sleep(2 * HOUR_S)
        await _told_once(scene, "it became a dead letter")
        # And an answer that comes after all is refused, and says so to ops.
        scene.parts["ops"] = answers_late
        (letter,) = await node.broker.dead_letters(10)
        (row,) = await scene.first.ask("dlq.replay", ids=[letter.id])
        assert row["replayed"]
        await asyncio.sleep(30.0)
        last = (await scene.recorded(types.AGENT_TURN_COMPLETED))[-1]
        assert last.value("answer", str, "") == "late"
        assert "is closed (ops could not work the question" in last.value("reason", str, "")
        assert len(scene.of("dev")) == 2 and len(await _ends(scene)) == 1

    async def answers_late(_: Turn) -> str:
        return "late"

    scene.play(play)


@pytest.mark.certifies(214, 215)
@pytest.mark.field("C26")
def test_an_answer_to_a_busy_asker_waits_behind_its_mail() -> None:
    async def dev(turn: Turn) -> Any:
        if turn.text == "go":
            return await turn.ask("ops", "go")
        if turn.text == "long":
            await asyncio.sleep(600.0)
        return "read"

    async def ops(_: Turn) -> str:
        await asyncio.sleep(5.0)
        return "yes"

    scene = Scene(dev=dev, ops=ops)

    async def play() -> None:
        node = scene.first.node
        for text in ("go", "long", *(f"mail {n}" for n in range(30))):
            await node.send("dev", text)
        await scene.until_closed()
        assert len(scene.of("dev")) == 2, "the answer waits in the inbox; the channel does not"
        await asyncio.sleep(2 * HOUR_S)
        texts = [event.body for turn in scene.of("dev") for event in turn.events]
        assert texts.count("yes") == 1 and len(texts) == 33 and texts[-1] == "yes"
        assert [end.closed_by for end in await _ends(scene)] == ["ops"]

    scene.play(play)


@pytest.mark.certifies(219)
@pytest.mark.field("C26")
def test_a_seat_that_leaves_the_company_is_not_waited_for() -> None:
    async def forever(_: Turn) -> None:
        await asyncio.sleep(10**9)

    scene = Scene(dev=asks_ops, ops=forever)

    async def play() -> None:
        node = scene.first.node
        await scene.first.ask("seat.pause", handle="ops")
        await node.send("dev", "go")
        await scene.until(lambda: len(scene.wakes) == 1)
        left = COMPANY.replace("  - {name: Ops, handle: ops}\n", "")
        node.company = parse_company(left)
        await asyncio.sleep(2 * HOUR_S)
        await _told_once(scene, "ops is no seat of this company any more")

    scene.play(play)


@pytest.mark.certifies(147, 214)
@pytest.mark.field("C26")
def test_an_answer_to_a_paused_asker_waits_for_its_resume() -> None:
    scene = Scene(dev=asks_ops)

    async def play() -> None:
        async def ops(_: Turn) -> str:
            await scene.first.ask("seat.pause", handle="dev")
            return "yes"

        scene.parts["ops"] = ops
        await scene.first.node.send("dev", "go")
        await scene.until_closed()
        await asyncio.sleep(2 * HOUR_S)
        assert len(scene.of("dev")) == 1
        await scene.first.ask("seat.resume", handle="dev")
        await asyncio.sleep(60.0)
        assert [turn.text for turn in scene.of("dev")] == ["go", "yes"]
        assert [end.closed_by for end in await _ends(scene)] == ["ops"]

    scene.play(play)


@pytest.mark.certifies(219, 220)
def test_a_channel_that_is_quiet_for_an_hour_is_closed_by_the_fleet() -> None:
    scene = Scene(dev=asks_ops)

    async def play() -> None:
        await scene.first.ask("seat.pause", handle="ops")
        await scene.first.node.send("dev", "go")
        await asyncio.sleep(HOUR_S - 60)
        assert (await scene.channel()).state == "open"
        await asyncio.sleep(900.0 + 120)
        await _told_once(scene, "ops has not answered for an hour")
        (end,) = await _ends(scene)
        assert HOUR_S <= end.duration_s <= HOUR_S + 900.0
        await scene.first.ask("seat.resume", handle="ops")
        await scene.until(lambda: len(scene.of("ops")) == 1)
        await asyncio.sleep(60.0)
        await _told_once(scene, "ops has not answered for an hour")
        last = (await scene.recorded(types.AGENT_TURN_COMPLETED))[-1]
        assert "its answer was not taken" in last.value("reason", str, "")

    scene.play(play, "n1", "n2")


@pytest.mark.certifies(219)
def test_an_announcement_that_fails_holds_up_no_other_and_is_made_up_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    announce, failed = Closing.announce, []

    async def once(closing: Closing, channel: Any) -> None:
        if not failed:
            failed.append(channel.id)
        if channel.id == failed[0] and len(failed) < 3:
            failed.append(channel.id)
            raise Unavailable("the broker is away")
        await announce(closing, channel)

    monkeypatch.setattr(Closing, "announce", once)

    async def asks_thrice(turn: Turn) -> Any:
        if is_task(turn):
            for brief in ("a", "b", "c"):
                await turn.ask("ops", brief)
        return "done"

    scene = Scene(dev=asks_thrice)

    async def play() -> None:
        await scene.first.ask("seat.pause", handle="ops")
        await scene.first.node.send("dev", "go")
        await scene.until(lambda: len(scene.wakes) == 3)
        await asyncio.sleep(HOUR_S + 900.0)
        assert {one.state for one in await scene.channels()} == {"closed"}
        assert len(await _ends(scene)) == 2 and len(scene.of("dev", "a2a_message")) == 3
        await asyncio.sleep(900.0)
        assert {end.channel_id for end in await _ends(scene)} == {
            one.id for one in await scene.channels()
        }

    scene.play(play)


@pytest.mark.certifies(214, 215)
def test_what_a_turn_could_not_send_is_sent_by_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    async def cut_off(*_: Any) -> str:
        return ""

    monkeypatch.setattr(Answering, "send", cut_off)
    scene = Scene(dev=asks_ops)

    async def play() -> None:
        await scene.first.node.send("dev", "go")
        await scene.until(lambda: len(scene.of("ops")) == 1)
        await asyncio.sleep(15.0)
        assert (await scene.channel()).state == "answered"
        assert len(scene.of("dev")) == 1
        await asyncio.sleep(35.0)
        assert [turn.text for turn in scene.of("dev")] == ["go", "done"]
        assert [end.closed_by for end in await _ends(scene)] == ["ops"]

    scene.play(play)


@pytest.mark.certifies(144, 214, 219)
def test_an_answer_that_takes_a_run_of_hours_is_waited_for() -> None:
    async def begins(turn: Turn) -> Any:
        if turn.events[0].type == types.A2A_REQUEST:
            return Suspend("long")
        return "built it"

    scene = Scene(dev=asks_ops, ops=begins)

    async def play() -> None:
        await scene.first.node.send("dev", "go")
        await scene.until(lambda: len(scene.of("ops")) == 1)
        await asyncio.sleep(5 * HOUR_S)
        assert (await scene.channel()).state == "open"
        await scene.first.one("seat.pause", handle="ops")
        await scene.first.one("run.complete", handle="ops", run_id="long", text="it is built")
        await asyncio.sleep(HOUR_S - 960)
        assert (await scene.channel()).state == "open", "its last turn has its hour"
        await scene.first.one("seat.resume", handle="ops")
        await scene.until(lambda: len(scene.of("dev")) == 2)
        (woken,) = scene.of("dev", types.A2A_MESSAGE)
        assert woken.text == "built it" and not woken.events[0].metadata["failed"]
        (end,) = await _ends(scene)
        assert end.closed_by == "ops"

    scene.play(play)


@pytest.mark.certifies(219)
def test_what_became_of_a_run_that_ended_without_an_answer_is_not_waited_for() -> None:
    async def begins(turn: Turn) -> Any:
        return Suspend("long")

    scene = Scene(dev=asks_ops, ops=begins)

    async def play() -> None:
        await scene.first.node.send("dev", "go")
        await scene.until(lambda: len(scene.of("ops")) == 1)
        await asyncio.sleep(2 * HOUR_S)
        await scene.first.one("seat.pause", handle="ops")
        await scene.first.one("run.complete", handle="ops", run_id="long", text="it is built")
        await asyncio.sleep(HOUR_S + 960)
        await _told_once(scene, "ops has not answered for an hour")

    scene.play(play)
