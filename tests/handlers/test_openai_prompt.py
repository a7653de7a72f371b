"""What a model is told, word for word."""

from __future__ import annotations

import pytest
from handler_turns import a_turn
from msgspec import structs

from crewlet.events.work_items import WorkItem
from crewlet.handlers.openai.prompt import ASKING, HOW, MOST, opening
from crewlet.handlers.openai.tools import tools_for
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


def a_seat(handle: str, **more: str) -> SeatView:
    return SeatView(handle=handle, name=handle.upper(), **more)


def test_colleagues_are_named_with_what_they_are_there_for() -> None:
    near = [a_seat("qa", unit="Platform", goal="Nothing\nships  broken"), a_seat("ops")]
    system, _ = opening(a_turn(), "", near)
    told = f"{ASKING}\n- qa (QA, Platform: Nothing ships broken)\n- ops (OPS)"
    assert system["content"].endswith(f"{HOW}\n\n{told}")
    _, tool = tools_for(near)
    assert tool["function"]["parameters"]["properties"]["handle"]["enum"] == ["qa", "ops"]


def test_of_a_large_company_the_nearest_are_told_and_anybody_may_be_named() -> None:
    near = [a_seat(f"s{n}", goal="x" * 1000) for n in range(500)]
    content = opening(a_turn(), "", near)[0]["content"]
    assert "- s0 (S0: xxx" in content and f"- s{MOST} " not in content
    assert content.endswith(f"and {500 - MOST} more, by their handles.")
    assert len(content) < 7000
    assert "enum" not in tools_for(near)[1]["function"]["parameters"]["properties"]["handle"]
    exact = near[:MOST]
    assert not opening(a_turn(), "", exact)[0]["content"].endswith("handles.")
    assert "enum" in tools_for(exact)[1]["function"]["parameters"]["properties"]["handle"]


def test_who_has_nobody_to_ask_is_not_told_of_asking() -> None:
    assert [tool["function"]["name"] for tool in tools_for(())] == ["reply"]
    assert "a2a_ask" not in opening(a_turn(), "")[0]["content"]


def test_what_is_not_known_is_left_out() -> None:
    turn = a_turn()
    bare = structs.replace(turn.events[0], metadata={}, subject="", sender="", body="")
    nowhere = structs.replace(turn.conversation, conversation_identity="")
    system, user = opening(structs.replace(turn, events=(bare,), conversation=nowhere), "")
    assert system["content"] == f"You are Dev (handle dev) at acme.\n\n{HOW}"
    assert user["content"] == "## external_notification, 2026-11-30 09:00:00 UTC"


@pytest.mark.certifies(167)
def test_a_colleagues_question_says_what_it_is_about() -> None:
    """It has no conversation of its own; one that has says so by its name."""
    turn = a_turn()
    item = WorkItem(backend="jira", id="POC-7", key="POC-7", project="POC")
    nowhere = structs.replace(turn.conversation, conversation_identity="")
    asked = structs.replace(turn, work_item=item, work_item_basis="asked_by", conversation=nowhere)
    assert opening(asked, "")[1]["content"].startswith("This is about jira POC-7\n\n## ")
    charged = structs.replace(turn, work_item=item, work_item_basis="trigger")
    assert opening(charged, "")[1] == opening(turn, "")[1]
