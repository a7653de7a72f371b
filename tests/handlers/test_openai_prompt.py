"""What a model is told, word for word."""

from __future__ import annotations

import pytest
from handler_turns import a_turn
from msgspec import structs

from crewlet.handlers.openai.prompt import HOW, opening
from crewlet.turn import SeatView

pytestmark = pytest.mark.certifies(275)

GOLDEN = """\
Conversation github:o/r#7

## external_notification from ada, 2026-11-30 09:00:00 UTC
Subject: Broken build
labels: bug, ui
number: 7
repo: o/r

please look"""


def test_the_prompt_is_made_of_company_seat_text_and_metadata() -> None:
    turn = a_turn()
    noise = {"repo": "o/r", "nested": {"a": 1}, "html": "a\nb", "empty": "", "flag": True}
    first = structs.replace(
        turn.events[0], metadata={"number": 7, "labels": ["bug", "ui"], **noise}
    )
    seat = SeatView(handle="dev", name="Developer", unit="Platform", goal="Turn issues into PRs")
    turn = structs.replace(turn, seat=seat, events=(first,))
    system, user = opening(turn, "Answer in German.")
    assert system["content"] == (
        "Answer in German.\n\n"
        "You are Developer (handle dev) in Platform at acme.\n\n"
        f"Your goal: Turn issues into PRs\n\n{HOW}"
    )
    assert user == {"role": "user", "content": GOLDEN}


def test_several_events_are_their_digest_and_what_is_known_of_the_latest() -> None:
    turn = a_turn()
    older = structs.replace(turn.events[0], id="e-0", metadata={"old": "fact"})
    merged = structs.replace(turn, events=(older, turn.events[0]), digest="## 2 messages\n\n...")
    assert opening(merged, "")[1]["content"] == (
        "Conversation github:o/r#7\n\n## 2 messages\n\n...\n\n"
        "What is known of the latest:\nnumber: 7"
    )


def test_what_is_not_known_is_left_out() -> None:
    turn = a_turn()
    bare = structs.replace(turn.events[0], metadata={}, subject="", sender="", body="")
    nowhere = structs.replace(turn.conversation, conversation_identity="")
    system, user = opening(structs.replace(turn, events=(bare,), conversation=nowhere), "")
    assert system["content"] == f"You are Dev (handle dev) at acme.\n\n{HOW}"
    assert user["content"] == "## external_notification, 2026-11-30 09:00:00 UTC"
