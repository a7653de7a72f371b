"""What people say while a seat is busy, from the vendor's delivery to the turn that answers it."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from crewlet.events import catalogue as types
from crewlet.events.types import TurnTriggerSkipped
from crewlet.inbound.steps.worked import ANSWERED_IN_THREAD
from crewlet.turn import Answered, Turn
from tests.node.conversing import COMPANY, Talk, talking


@pytest.mark.certifies(87, 97, 102, 107)
def test_ten_comments_on_one_issue_during_a_turn_are_one_more_turn_with_one_digest() -> None:
    async def slow(_: Turn) -> str:
        await asyncio.sleep(60.0)
        return "done"

    async def play(talk: Talk) -> None:
        talk.work = slow
        await talk.comment(7, "start")
        await asyncio.sleep(5.0)
        for n in range(10):
            await talk.comment(7, f"more {n}", by=f"p{n}")
            await asyncio.sleep(1.0)
        await asyncio.sleep(300.0)
        first, second = talk.turns
        assert (len(first.events), first.digest) == (1, "")
        assert len(second.events) == 10
        assert second.digest.startswith("## 10 messages in one conversation: Issue 7\n")
        assert [f"more {n}" in second.digest for n in range(10)] == [True] * 10
        assert second.digest.endswith("@octo-dev more 9")
        (merged,) = await talk.recorded(types.NOTIFICATIONS_COALESCED)
        assert merged.value("partition_key", str, "") == "github:acme/rocket#7"

    talking(play)


@pytest.mark.certifies(81, 97)
def test_ten_comments_on_ten_issues_are_ten_turns_oldest_first() -> None:
    async def play(talk: Talk) -> None:
        async def slow(_: Turn) -> str:
            await asyncio.sleep(60.0)
            return "done"

        talk.work = slow
        await talk.comment(99, "busy")
        await asyncio.sleep(5.0)
        numbers = [4, 8, 1, 9, 3, 10, 2, 7, 5, 6]
        for number in numbers:
            await talk.comment(number, "look")
            await asyncio.sleep(1.0)
        await asyncio.sleep(1200.0)
        assert [turn.conversation.partition_key for turn in talk.turns[1:]] == [
            f"github:acme/rocket#{number}" for number in numbers
        ]
        assert all(turn.digest == "" for turn in talk.turns)
        assert await talk.recorded(types.NOTIFICATIONS_COALESCED) == []

    talking(play)


@pytest.mark.certifies(80, 81)
def test_a_poison_conversation_never_delays_another() -> None:
    async def play(talk: Talk) -> None:
        async def choosy(turn: Turn) -> str:
            if "poison" in turn.text:
                raise RuntimeError("always")
            return "done"

        talk.work = choosy
        await talk.comment(1, "poison")
        asked: list[float] = []
        for n in range(40):
            await asyncio.sleep(11.0)
            await talk.comment(2 + n, "healthy")
            asked.append(talk.now)
        await asyncio.sleep(1200.0)
        healthy = [
            at for at, turn in zip(talk.began, talk.turns, strict=True) if "healthy" in turn.text
        ]
        delays = [began - at for at, began in zip(asked, healthy, strict=True)]
        assert max(delays) < 1.0
        (dead,) = await talk.node.broker.dead_letters(10)
        assert "RuntimeError: always" in dead.reason

    talking(play)


@pytest.mark.certifies(108)
def test_the_settings_of_a_drain_are_those_of_the_company_as_it_is() -> None:
    async def play(talk: Talk) -> None:
        async def slow(_: Turn) -> str:
            await asyncio.sleep(60.0)
            return "done"

        talk.work = slow
        await talk.comment(7, "start")
        await asyncio.sleep(5.0)
        for n in range(6):
            await talk.comment(7, f"more {n}")
        talk.node.company = structs.replace(talk.company, notification_coalesce_max_batch=3)
        await asyncio.sleep(600.0)
        assert [len(turn.events) for turn in talk.turns] == [1, 3, 3]

    talking(play)


# -- answered along with another ------------------------------------------------------


def failing_once(talk: Talk, *, reports: bool) -> None:
    """The first message's turn breaks late; the next one reads the thread and answers both."""

    async def work(turn: Turn) -> str | Answered:
        if len(talk.turns) == 1:
            await asyncio.sleep(5.0)
            raise RuntimeError("broke")
        return Answered("both", ("slack:C9:1718.002",)) if reports else "mine"

    talk.work = work


@pytest.mark.certifies(92)
def test_a_failed_message_that_a_later_turn_answered_is_dropped() -> None:
    async def play(talk: Talk) -> None:
        failing_once(talk, reports=True)
        identity = await talk.chat("1718.002", "one")
        await asyncio.sleep(2.0)
        await talk.chat("1718.003", "two")
        await asyncio.sleep(120.0)
        assert [turn.events[0].message for turn in talk.turns] == [identity, "slack:C9:1718.003"]
        (skip,) = await talk.recorded(types.TURN_TRIGGER_SKIPPED)
        said = skip.read(TurnTriggerSkipped)
        assert said.reason == ANSWERED_IN_THREAD
        assert said.trigger_id == talk.turns[0].events[0].id
        assert said.worked_by == talk.turns[1].turn_id
        assert await talk.waiting() == 0

    talking(play)


@pytest.mark.certifies(92)
def test_the_drop_holds_on_another_node_too() -> None:
    async def play(talk: Talk) -> None:
        failing_once(talk, reports=True)
        await talk.chat("1718.002", "one")
        await asyncio.sleep(2.0)
        await talk.chat("1718.003", "two")
        await asyncio.sleep(3.5)  # the second is answered, the first still in its backoff
        assert len(talk.turns) == 2
        await talk.moved("n2")
        await asyncio.sleep(300.0)
        assert len(talk.turns) == 2
        assert len(await talk.recorded(types.TURN_TRIGGER_SKIPPED)) == 1
        assert await talk.waiting() == 0

    talking(play)


@pytest.mark.certifies(93)
def test_a_failed_message_that_no_turn_was_shown_is_worked() -> None:
    async def play(talk: Talk) -> None:
        failing_once(talk, reports=False)
        identity = await talk.chat("1718.002", "one")
        await asyncio.sleep(2.0)
        await talk.chat("1718.003", "two")
        await asyncio.sleep(120.0)
        assert [turn.events[0].message for turn in talk.turns] == [
            identity,
            "slack:C9:1718.003",
            identity,
        ]
        assert await talk.recorded(types.TURN_TRIGGER_SKIPPED) == []

    talking(play)


@pytest.mark.certifies(108)
def test_a_company_whose_file_asks_for_a_window_gathers_what_comes_in_it() -> None:
    async def play(talk: Talk) -> None:
        for n in range(3):
            await talk.comment(8, f"idle {n}")
            await asyncio.sleep(2.0)
        await asyncio.sleep(60.0)
        assert [len(turn.events) for turn in talk.turns] == [3]

    talking(play, COMPANY.replace("max_batch: 20", "window_seconds: 10"))
