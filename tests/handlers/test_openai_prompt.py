"""What a model is told, word for word."""

from __future__ import annotations

from datetime import timedelta

import pytest
from handler_turns import AT, a_turn
from msgspec import structs

from crewlet.handlers.openai.prompt import HOW, opening
from crewlet.turn import SeatView, TurnEvent

pytestmark = pytest.mark.certifies(275)

GOLDEN = """\
Conversation github:o/r#7

## external_notification from ada, 2026-11-30 09:00:00 UTC
Subject: Broken build
labels: bug, ui
number: 7
repo: o/r

please look

## task_assigned from boss, 2026-11-30 09:02:00 UTC

and answer today"""


def test_the_prompt_is_made_of_company_seat_text_and_metadata() -> None:
    turn = a_turn()
    noise = {"repo": "o/r", "nested": {"a": 1}, "html": "a\nb", "empty": "", "flag": True}
    first = structs.replace(
        turn.events[0], metadata={"number": 7, "labels": ["bug", "ui"], **noise}
    )
    second = TurnEvent(
        id="e-2",
        type="task_assigned",
        timestamp=AT + timedelta(minutes=2),
        sender="boss",
        body="and answer today",
    )
    seat = SeatView(handle="dev", name="Developer", unit="Platform", goal="Turn issues into PRs")
    turn = structs.replace(turn, seat=seat, events=(first, second))
    system, user = opening(turn, "Answer in German.")
    assert system["content"] == (
        "Answer in German.\n\n"
        "You are Developer (handle dev) in Platform at acme.\n\n"
        f"Your goal: Turn issues into PRs\n\n{HOW}"
    )
    assert user == {"role": "user", "content": GOLDEN}


def test_what_is_not_known_is_left_out() -> None:
    turn = a_turn()
    bare = structs.replace(turn.events[0], metadata={}, subject="", sender="", body="")
    nowhere = structs.replace(turn.conversation, conversation_identity="")
    system, user = opening(structs.replace(turn, events=(bare,), conversation=nowhere), "")
    assert system["content"] == f"You are Dev (handle dev) at acme.\n\n{HOW}"
    assert user["content"] == "## external_notification, 2026-11-30 09:00:00 UTC"
