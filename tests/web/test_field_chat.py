"""Slack's edits, previews and files, as field reports tell them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.web.scene import Scene
from tests.web.scene import play as play_company

COMPANY = """
name: Company T
roles:
  - {name: Dev, handle: dev, contact: {slack_user_id: UDEV}}
  - {name: Ops, handle: ops, contact: {slack_user_id: UOPS}}
integrations:
  slack: {secret: "${SECRET}"}
"""
TEXT = "<@UDEV> see <https://a.example> and <https://b.example>"
READ = "<@UDEV> see https://a.example and https://b.example"
"""As a seat reads it: Slack's brackets around links are Slack's."""

SAID = {
    "type": "message",
    "user": "UANN",
    "text": TEXT,
    "ts": "1772359200.000100",
    "channel": "C1",
    "channel_type": "channel",
}
KEY = "slack:C1:1772359200.000100"
PREVIEWS = [{"from_url": "https://a.example", "title": "A"}, {"from_url": "https://b.example"}]


def changed(at: str, message: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """An edit as Slack tells it: hidden, with a time of its own, the message one level deeper."""
    return {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "channel": "C1",
        "channel_type": "channel",
        "ts": at,
        "event_ts": at,
        "message": message,
        "previous_message": before,
    }


def preview(message: dict[str, Any] = SAID) -> dict[str, Any]:
    return changed("1772359200.900000", {**message, "attachments": PREVIEWS}, message)


def play(test: Callable[[Scene], Awaitable[None]], *, turn_s: float = 0.0) -> None:
    play_company(COMPANY, test, turn_s=turn_s)


@pytest.mark.field("C19")
@pytest.mark.certifies(115, 128)
@pytest.mark.parametrize("turn_s", [0.0, 30.0])
def test_a_preview_of_a_link_is_no_second_request(turn_s: float) -> None:
    """It comes while the turn runs, or after it; the bot's own message never wakes anybody."""

    async def test(scene: Scene) -> None:
        assert await scene.slack(SAID, "Ev1", 0.9) == 202
        assert await scene.slack(preview(), "Ev2", 60.0) == 202
        own = {**SAID, "user": "UDEV", "bot_id": "B1", "ts": "1772359300.000100"}
        await scene.slack(own, "Ev3", 0.9)
        await scene.slack(preview(own), "Ev4", 60.0)
        assert scene.turns == [("dev", KEY, READ)]
        assert scene.skips() == [], "a preview is a note at debug level at most"

    play(test, turn_s=turn_s)


@pytest.mark.field("C19")
@pytest.mark.certifies(115, 117)
def test_an_edit_by_a_person_is_one_follow_up_in_its_own_conversation() -> None:
    async def test(scene: Scene) -> None:
        await scene.slack(SAID, "Ev1", 60.0)
        edited = {**SAID, "text": TEXT + " today"}
        await scene.slack(changed("1772359260.000100", edited, SAID), "Ev2", 60.0)
        assert scene.turns == [("dev", KEY, READ), ("dev", KEY, READ + " today")]
        called = {**SAID, "text": TEXT + " today <@UOPS>"}
        await scene.slack(changed("1772359320.000100", called, edited), "Ev3", 60.0)
        woken = [turn for turn in scene.turns if turn[0] == "ops"]
        assert woken == [("ops", KEY, READ + " today <@UOPS>")]
        gone = {
            **changed("1772359380.000100", {}, called),
            "subtype": "message_deleted",
            "deleted_ts": SAID["ts"],
        }
        before = list(scene.turns)
        await scene.slack(gone, "Ev4", 60.0)
        assert scene.turns == before
        assert {key for _, key, _ in scene.turns} == {KEY}, "no outer time is a conversation"
        assert all(body for _, _, body in scene.turns)

    play(test)


SHOT = {"name": "shot.png", "mimetype": "image/png", "permalink": "https://slack.example/F1"}


@pytest.mark.field("C25")
@pytest.mark.certifies(115, 128)
def test_a_file_wakes_with_its_text_and_its_name() -> None:
    async def test(scene: Scene) -> None:
        shared = {**SAID, "subtype": "file_share", "files": [SHOT]}
        await scene.slack({**shared, "text": "<@UDEV> what is this?"}, "Ev1")
        direct = {**shared, "channel": "D1", "channel_type": "im"}
        await scene.slack({**direct, "text": "and this?", "ts": "1772359201.000100"}, "Ev2")
        await scene.slack({**direct, "text": "", "ts": "1772359202.000100"}, "Ev3")
        seats = [seat for seat, _, _ in scene.turns]
        assert seats == ["dev"], "a direct message says by its authorization for whom it is"

    play(test)


@pytest.mark.field("C25")
def test_direct_files_reach_the_seat_they_are_for() -> None:
    async def test(scene: Scene) -> None:
        direct = {**SAID, "channel": "D1", "channel_type": "im", "subtype": "file_share"}
        for number, text in enumerate(["and this?", ""]):
            event = {**direct, "text": text, "files": [SHOT], "ts": f"177235930{number}.000100"}
            await scene.slack(
                event, f"Ev{number}", authorizations=[{"user_id": "UDEV", "is_bot": True}]
            )
        assert [(seat, key) for seat, key, _ in scene.turns] == [("dev", "slack:D1")] * 2
        for _, _, body in scene.turns:
            assert "shot.png" in body and "image/png" in body and "https://slack.example/F1" in body

    play(test)


@pytest.mark.field("C25")
def test_a_reply_that_is_broadcast_wakes_once_in_its_thread() -> None:
    async def test(scene: Scene) -> None:
        await scene.slack(SAID, "Ev1", 60.0)
        reply = {**SAID, "text": "so?", "thread_ts": SAID["ts"], "ts": "1772359230.000100"}
        await scene.slack({**reply, "subtype": "thread_broadcast"}, "Ev2", 1.0)
        await scene.slack(reply, "Ev3", 60.0)
        assert scene.turns[1:] == [("dev", KEY, "so?")]
        await scene.slack(
            {**SAID, "subtype": "me_message", "text": "waves at <@UDEV>", "ts": "1772359240.0001"},
            "Ev4",
        )
        assert [body for _, _, body in scene.turns[2:]] == ["waves at <@UDEV>"]

    play(test)
