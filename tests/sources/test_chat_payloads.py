"""Slack's and Mattermost's payloads: event, conversation, sender, addressed, verdict."""

from __future__ import annotations

import json
from typing import Any

import chat_payloads as chats
import pytest

from crewlet import sources
from crewlet.sources import Notification, Skip
from crewlet.sources.phrases import PARSER_REFUSED

OWN = [(vendor, name) for vendor in chats.CHATS for name in chats.own(vendor)]
SHARED = [(vendor, name) for vendor in chats.CHATS for name in chats.shared_rows(vendor)]


@pytest.mark.certifies(110, 115, 117, 118, 119)
@pytest.mark.parametrize(("vendor", "name"), OWN)
def test_own_payload_is_read_as_expected(vendor: str, name: str) -> None:
    case = chats.own(vendor)[name]
    assert chats.facts(chats.read(vendor, case["payload"])) == case["expect"]


@pytest.mark.certifies(110, 115)
@pytest.mark.parametrize(("vendor", "name"), SHARED or [pytest.param("", "", id="no-data")])
def test_shared_payload_is_read_as_expected(vendor: str, name: str) -> None:
    if not name:
        pytest.skip(f"no shared webhook data at {chats.SHARED}; set CREWLET_WEBHOOK_DATA")
    folder = chats.SHARED / vendor
    sent = json.loads((folder / "headers.json").read_text())[name]
    body = (folder / name).read_bytes()
    found = sources.parse(vendor, sent, body)[0]
    assert isinstance(found, Notification)
    row = chats.shared_rows(vendor)[name]
    said = chats.facts(found)
    del said["identity"]
    assert said == {
        "event": row["event"].rpartition(" / ")[2],
        "key": row["key"] or "",
        "sender": _sender(row, found),
        "addressed": row["addressed"] or _other_side(row, sources.decode(vendor, sent, body)),
        "verdict": row["verdict"],
    }


def _sender(row: dict[str, Any], found: Notification) -> str:
    """The row of a hook has the user's name for sender, and his id in the note. The id is the
    one that a seat is known by, so that nobody is woken by his own post."""
    note, by_id = row["note"], "user id "
    if by_id not in note:
        return row["sender"] or "unknown"
    assert found.metadata["sender_name"] == row["sender"]
    return note.rpartition(by_id)[2]


def _other_side(row: dict[str, Any], value: Any) -> list[str]:
    """The row of a direct message leaves to the reader who its other side is: the second id in
    the channel's name."""
    sides = value.get("data", {}).get("channel_name", "").split("__") if row["key"] else []
    direct = "the other side" in row["note"] and len(sides) == 2
    return [side for side in sides if side != row["sender"]] if direct else []


@pytest.mark.parametrize("vendor", chats.CHATS)
def test_every_shared_payload_has_a_row(vendor: str) -> None:
    if not SHARED:
        pytest.skip(f"no shared webhook data at {chats.SHARED}; set CREWLET_WEBHOOK_DATA")
    files = {path.name for path in (chats.SHARED / vendor).iterdir()} - {"headers.json"}
    assert files == set(chats.shared_rows(vendor))


@pytest.mark.parametrize(
    ("vendor", "name"),
    [("slack", "message__bare"), ("mattermost", "posted__without_ids")],
)
def test_a_message_without_a_place_is_dropped_with_its_reason(vendor: str, name: str) -> None:
    read, skip = chats.read_all(vendor, chats.payload(vendor, name))
    assert isinstance(read, Notification)
    assert isinstance(skip, Skip)
    assert (read.partition_key, read.verdict) == ("", "nothing")
    assert (skip.reason, skip.event_type) == (PARSER_REFUSED, read.event_type)


@pytest.mark.parametrize("vendor", chats.CHATS)
@pytest.mark.parametrize("value", [{}, [], 7, None, "x", {"a": 1}, {"type": "Not Me"}])
def test_json_that_is_no_delivery_is_a_skip_with_its_reason(vendor: str, value: object) -> None:
    [skip] = chats.read_all(vendor, value)
    assert isinstance(skip, Skip)
    assert skip.reason == PARSER_REFUSED
    assert skip.detail


@pytest.mark.certifies(130)
@pytest.mark.parametrize(
    ("vendor", "name", "key"),
    [
        ("slack", "message__channel", "Ev1"),
        ("slack", "block_actions", "1.2.3"),
        ("slack", "url_verification", ""),
        ("mattermost", "posted__open", ("p5" * 13)),
        ("mattermost", "outgoing_webhook", ("p5" * 13)),
        ("mattermost", "slash_command", "tr1"),
        ("mattermost", "post_edited", ""),
    ],
)
def test_the_delivery_is_known_by_the_id_in_its_body(vendor: str, name: str, key: str) -> None:
    value = chats.payload(vendor, name)
    assert sources.key_of(vendor, {}, value) == key
    assert sources.delivery_key(vendor, chats.JSON, json.dumps(value).encode()) == key
    assert sources.delivery_key(vendor, chats.JSON, b"{") == ""


@pytest.mark.parametrize("vendor", chats.CHATS)
def test_no_token_is_carried_along(vendor: str) -> None:
    for case in chats.own(vendor).values():
        value = {**case["payload"], "token": "hunter2"}
        body = json.dumps(value).encode()
        kept = sources.published(vendor, body)
        assert b"hunter2" not in kept
        assert "hunter2" not in repr(chats.read_all(vendor, value))
        assert sources.parse(vendor, chats.JSON, kept) == sources.parse(vendor, chats.JSON, body)


@pytest.mark.parametrize(
    ("vendor", "name", "facts"),
    [
        ("slack", "message__thread", {"thread_ts": "1772359100.000001", "channel": "C1"}),
        ("slack", "message__channel", {"timestamp": "2026-03-01T10:00:00.000100Z"}),
        ("slack", "message__channel", {"message_id": "C1:1772359200.000100"}),
        ("slack", "message__im", {"channel_kind": "im"}),
        ("slack", "message__mentions", {"everybody": True}),
        ("slack", "message__by_bot", {"bot": True, "subtype": "bot_message"}),
        ("slack", "message__edited", {"edited": True}),
        ("slack", "reaction_added", {"reaction": "eyes", "item_user": "UDEV"}),
        ("slack", "block_actions", {"actions": [{"action": "deploy", "value": "yes"}]}),
        ("mattermost", "posted__thread", {"root_id": "r6" * 13, "channel_kind": "O"}),
        ("mattermost", "posted__open", {"timestamp": "2026-03-01T10:00:00.123000Z"}),
        ("mattermost", "posted__mentions", {"everybody": True, "sender_name": "@ann"}),
        ("mattermost", "outgoing_webhook", {"trigger_word": "deploy", "sender_name": "ann"}),
        ("mattermost", "slash_command", {"command": "/deploy"}),
        ("mattermost", "reaction_added", {"reaction": "eyes"}),
    ],
)
def test_the_facts_are_in_the_metadata(vendor: str, name: str, facts: dict[str, object]) -> None:
    metadata = chats.read_own(vendor, name).metadata
    assert {key: metadata.get(key) for key in facts} == facts


@pytest.mark.field("C25")
@pytest.mark.parametrize(
    ("vendor", "name", "subject", "body"),
    [
        ("slack", "message__channel", "message in C1", "hello"),
        ("slack", "message__im", "direct message in D1", "hello"),
        ("slack", "message__mentions", "message in C1", "@oncall @here `<@UNOT>`\n"),
        ("slack", "message__file_share_mention", "message in C1", "<@UDEV> why?\n[file] shot.png"),
        (
            "slack",
            "message__file_without_text",
            "message in C1",
            "[file] shot.png (image/png) https://octo.slack.example/files/F1/shot.png",
        ),
        ("slack", "message__deleted", "message deleted in C1", "message deleted in C1"),
        ("slack", "message__edited", "message in C1", "hello <@UDEV>, all"),
        ("slack", "block_actions", "message in C1", "block actions\n- deploy: yes"),
        ("mattermost", "posted__open", "message in Town", "hello"),
        ("mattermost", "posted__file_without_text", "message in Town", "shot.png (image/png)"),
        ("mattermost", "outgoing_webhook", "message in town", "deploy please"),
        ("mattermost", "slash_command", "message in town", "/deploy now"),
        ("mattermost", "hello", "hello", "hello"),
    ],
)
def test_subject_and_body_are_what_a_person_wants_to_read(
    vendor: str, name: str, subject: str, body: str
) -> None:
    read = chats.read_own(vendor, name)
    assert read.subject == subject
    assert body in read.body


def test_the_guide_names_every_fact_of_the_metadata() -> None:
    guide = (chats.ROOT / "docs/guide/sources.md").read_text()
    stated = {key for vendor, name in OWN for key in chats.read_own(vendor, name).metadata}
    assert {key for key in stated if f"`{key}`" not in guide} == set()
