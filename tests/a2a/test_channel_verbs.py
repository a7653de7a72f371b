"""Channels as operators see them, and a question from outside the node's process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crewlet.errors import AskRefused
from crewlet.events import Trace
from crewlet.events import catalogue as types
from crewlet.handlers import wrap
from crewlet.inbound.desk import Asker, TurnDesk
from crewlet.inbound.running import Turns
from crewlet.turn import Ack, Conversation, SeatView, Turn
from tests.a2a.scene import Scene, asks_ops, is_task


@pytest.mark.certifies(213, 216)
def test_a_question_that_waits_is_seen() -> None:
    scene = Scene(dev=asks_ops)

    async def play() -> None:
        desk = scene.first
        await desk.ask("seat.pause", handle="ops")
        await desk.node.send("dev", "is it fit?")
        await scene.until(lambda: len(scene.wakes) == 1)
        await asyncio.sleep(60.0)
        row = await desk.one("channel.ls")
        assert (row["asker"], row["target"], row["state"]) == ("dev", "ops", "open")
        assert row["quiet_s"] >= 60.0 and row["messages"] == 1
        shown = await desk.one("channel.show", channel=row["channel"])
        assert (shown["brief"], shown["turn_id"]) == ("is it fit?", scene.turns[0].turn_id)
        whys = [why for why in await desk.ask("why", handle="dev") if why["code"] == "asked"]
        assert len(whys) == 1 and "it asked ops" in whys[0]["text"]
        assert row["channel"] in whys[0]["text"]
        await desk.ask("seat.resume", handle="ops")
        await scene.until_closed()
        assert await desk.ask("channel.ls") == []
        (row,) = await desk.ask("channel.ls", all=True)
        assert (row["state"], row["closed_by"], row["messages"]) == ("closed", "ops", 2)
        assert "asked" not in [why["code"] for why in await desk.ask("why", handle="dev")]
        failure = await desk.refused("channel.show", channel="a2a-000000000000")
        assert failure.code == "not_found" and "channel ls --all" in failure.message

    scene.play(play)


@pytest.mark.certifies(213, 217)
def test_a_process_asks_in_the_name_of_the_turn_that_it_works() -> None:
    refused: list[Any] = []

    async def by_command(turn: Turn) -> Any:
        if not is_task(turn):
            return "read"
        ask = {"turn": turn.turn_id, "brief": "fit?"}
        for handle in ("boss", "dev"):
            refused.append(await scene.first.refused("ask", handle=handle, **ask))
        (row,) = await scene.first.ask("ask", handle="ops", **ask)
        return row["note"]

    scene = Scene(dev=by_command)

    async def play() -> None:
        await scene.first.node.send("dev", "go")
        await scene.until_closed()
        await scene.until(lambda: len(scene.of("dev", types.A2A_MESSAGE)) == 1)
        assert [one.exit for one in refused] == [3, 3]
        assert [one.code for one in refused] == ["unknown_seat", "ask_refused"]
        over = await scene.first.refused(
            "ask", handle="ops", brief="more", turn=scene.turns[0].turn_id
        )
        assert over.code == "no_turn" and "while it runs" in over.message
        assert len(scene.of("ops")) == 1

    scene.play(play)


# -- the desk of a turn ---------------------------------------------------------------


class Colleagues:
    def __init__(self) -> None:
        self.asked: list[tuple[int, str, str]] = []

    async def ask(self, asker: Asker, ordinal: int, handle: str, brief: str) -> str:
        await asyncio.sleep(0)
        self.asked.append((ordinal, handle, brief))
        return "a2a-0123456789ab"

    def colleagues(self, asker: Asker) -> list[SeatView]:
        return [SeatView(handle="ops", name="Ops")]


def a_turn() -> Turn:
    return Turn(
        turn_id="turn-1",
        seat=SeatView(handle="dev", name="Dev"),
        company="T",
        conversation=Conversation(),
        events=(),
    )


def a_desk(colleagues: Colleagues | None) -> TurnDesk:
    asker = Asker(
        handle="dev", turn_id="turn-1", work_key="k", depth=0, chain=(), trace=Trace.root()
    )
    return TurnDesk(asker, colleagues, Turns(1))


def test_a_handler_in_a_thread_asks_and_waits() -> None:
    def work(turn: Turn) -> Ack:
        turn.ask_blocking("ops", "one")
        return turn.ask_blocking("qa", "two")

    async def main() -> None:
        colleagues = Colleagues()
        outcome = await wrap(work, 10)(a_turn().at(a_desk(colleagues)))
        assert colleagues.asked == [(0, "ops", "one"), (1, "qa", "two")]
        assert isinstance(outcome, Ack) and "asked qa on channel a2a-" in (outcome.answer or "")

    asyncio.run(main())


def test_on_the_loop_the_blocking_way_is_refused_and_says_the_other() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"await turn\.ask"):
            a_turn().at(a_desk(Colleagues())).ask_blocking("ops", "one")

    asyncio.run(main())


def test_who_has_no_node_or_is_over_asks_nobody() -> None:
    async def main() -> None:
        with pytest.raises(AskRefused, match="no node runs this turn"):
            await a_turn().ask("ops", "one")
        with pytest.raises(AskRefused, match="without colleagues"):
            await a_turn().at(a_desk(None)).ask("ops", "one")
        desk, colleagues = a_desk(colleagues := Colleagues()), colleagues
        desk.close()
        with pytest.raises(AskRefused, match="the turn is over"):
            await a_turn().at(desk).ask("ops", "one")
        assert colleagues.asked == []

    asyncio.run(main())
