"""What a turn is charged to goes along: to the colleague it asks, back with the answer, through a
run. `agent_turn_started` says so before the handler has read anything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors.delivery import Ack
from crewlet import topics
from crewlet.events import catalogue as types
from crewlet.runs.notices import said
from crewlet.turn import Suspend, Turn
from tests.node.conversing import COMPANY, Talk, talking

STUDIO = COMPANY + "  - {name: Qa, handle: qa}\n  - {name: Ops, handle: ops}\n"
ITEM = {
    "backend": "github",
    "id": "acme/rocket#7",
    "key": "acme/rocket#7",
    "project": "acme/rocket",
}

pytestmark = pytest.mark.certifies(167)


async def told(scene: Talk, event_type: str) -> list[dict[str, Any]]:
    """The bodies of that type, in their order."""
    events = sorted(await scene.recorded(event_type), key=lambda event: event.timestamp)
    return [{key: event.value(key, object, None) for key in event.body} for event in events]


def test_an_item_goes_along_with_a_question_its_answer_and_a_run() -> None:
    async def work(turn: Turn) -> Any:
        if turn.events[0].type == types.EXTERNAL_NOTIFICATION:
            return await turn.ask("qa", "Is it so?")
        if turn.seat.handle == "qa" and turn.events[0].type == types.A2A_REQUEST:
            return await turn.ask("ops", "Is it?")
        if turn.seat.handle == "dev" and turn.events[0].type == types.A2A_MESSAGE:
            return Suspend("r1")
        return Ack("it is")

    async def test(scene: Talk) -> None:
        scene.work = work
        await scene.comment(7, "please look")
        await asyncio.sleep(60)
        end = said(types.RUN_COMPLETED, "r1", "built", scene.node.clock.now())
        await scene.node.queue.publish(topics.control("dev"), end)
        await asyncio.sleep(60)
        started = await told(scene, types.AGENT_TURN_STARTED)
        seen = [(row["agent_role"], row["woken_as"], row["work_item_basis"]) for row in started]
        assert sorted(seen) == [
            ("dev", types.A2A_MESSAGE, "asked_by"),
            ("dev", "issue_comment.created", "trigger"),
            ("dev", types.RUN_COMPLETED, "resume"),
            ("ops", types.A2A_REQUEST, "asked_by"),
            ("qa", types.A2A_MESSAGE, "asked_by"),
            ("qa", types.A2A_REQUEST, "asked_by"),
        ]
        assert [row["work_item"] for row in started] == [ITEM] * 6
        assert [row["woken_by"] for row in started[:2]] == ["ann", "dev"]
        resumed = started[-1]
        (parked,) = [row for row in started[:-1] if row["turn_id"] == resumed["turn_id"]]
        assert (parked["resumed"], resumed["resumed"]) == (False, True)
        ended = await told(scene, types.AGENT_TURN_COMPLETED)
        assert [row["work_item"] for row in ended] == [ITEM] * 6

    talking(test, STUDIO)


def test_where_nothing_names_an_item_the_record_names_none() -> None:
    async def test(scene: Talk) -> None:
        await scene.node.send("dev", "hello", sender="ann")
        await asyncio.sleep(10)
        (started,) = await told(scene, types.AGENT_TURN_STARTED)
        assert (started["woken_by"], started["woken_as"]) == ("ann", "task_assigned")
        assert not {"work_item", "work_item_basis"} & set(started)
        (ended,) = await told(scene, types.AGENT_TURN_COMPLETED)
        assert "work_item" not in ended
        (turn,) = scene.turns
        assert turn.work_item is None

    talking(test)


def test_a_turn_is_on_record_before_its_handler_reads_anything() -> None:
    seen: list[int] = []

    async def test(scene: Talk) -> None:
        async def look(turn: Turn) -> None:
            seen.append(len(await told(scene, types.AGENT_TURN_STARTED)))
            raise RuntimeError("died while it gathered its context")

        scene.work = look
        await scene.node.send("dev", "hello")
        await asyncio.sleep(0.5)
        assert seen == [1]

    talking(test)
