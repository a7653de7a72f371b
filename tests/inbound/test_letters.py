"""From bytes to a letter, and from letters to a turn."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from inbound_bench import START, event, letter

from actors.delivery import BUDGET, Delivery, Letter
from crewlet import topics
from crewlet.company import Seat
from crewlet.errors import CorruptEvent
from crewlet.events import Event, Trace, encode
from crewlet.events.types import ExternalNotification
from crewlet.inbound import letters
from crewlet.inbound.build_turn import build_turn
from crewlet.inbound.coalesce import coalesce
from crewlet.turn import Turn

SEAT = Seat(handle="dev", name="Developer", unit="Engineering", goal="ship", agent_id="a-1")
BOX = topics.inbox_of("dev")


def read(data: bytes) -> Letter:
    return letters.read(Delivery(BOX, data, 1, 1, "1"))


def turn_of(*made: Letter, trace: Trace | None = None) -> Turn:
    return build_turn(
        made,
        coalesce([letters.event_of(one) for one in made]),
        seat=SEAT,
        company="Acme",
        trace=trace or Trace.root(),
        deadline=START,
    )


# -- letters --------------------------------------------------------------------------


@pytest.mark.certifies(116, 119)
def test_a_letter_is_of_the_conversation_that_its_producer_named() -> None:
    one = letter(event("e1", key="slack:C1", minute=3))
    assert (one.id, one.key) == ("e1", "slack:C1")
    assert one.timestamp == START.timestamp() + 180


@pytest.mark.certifies(78, 116)
@pytest.mark.parametrize("payload", [{}, {"partition_key": ""}, {"partition_key": 7}])
def test_without_a_conversation_it_is_one_of_its_own(payload: dict[str, Any]) -> None:
    made = Event.new("x", id="e1", at=START, trace=Trace.root(), payload=payload)
    assert letter(made).key == "event:e1"


@pytest.mark.certifies(119)
def test_the_two_keys_are_read_only_from_their_own_fields() -> None:
    only = {"partition_key": "p"}
    made = Event.new("x", at=START, trace=Trace.root(), payload=only, body={"partition_key": "b"})
    assert letters.partition_key(made) == "p"
    assert letters.conversation_identity(made) == ""


@pytest.mark.certifies(46)
@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[" * 100_000])
def test_bytes_that_are_no_event_are_no_letter(data: bytes) -> None:
    for reading in (letters.read, letters.read_alone):
        with pytest.raises(CorruptEvent):
            reading(Delivery(BOX, data, 1, 1, "1"))


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"]
)
def test_any_timestamp_of_the_wire_has_an_age(text: str) -> None:
    data = json.dumps({"id": "e", "type": "x", "timestamp": text}).encode()
    assert isinstance(read(data).timestamp, float)


def test_a_router_reads_every_event_alone() -> None:
    delivery = Delivery(BOX, encode(event("e1", key="slack:C1")), 1, 1, "1")
    assert letters.read_alone(delivery).key == "event:e1"


# -- turns ----------------------------------------------------------------------------


@pytest.mark.certifies(51, 52, 53, 55)
def test_a_turn_states_both_headrooms_and_its_attempt() -> None:
    turn = turn_of(
        letter(event("a"), 1, 3), letter(event("b"), 2, BUDGET), letter(event("c"), 3, None)
    )
    assert [one.headroom for one in turn.events] == [BUDGET - 3, 0, None]
    assert (turn.headroom, turn.attempt) == (0, BUDGET)
    assert turn_of(letter(event("c"), 1, None)).headroom is None


def test_a_turn_names_seat_company_and_conversation() -> None:
    trace = Trace.root()
    turn = turn_of(letter(event("a", key="slack:C1")), trace=trace)
    assert (turn.seat.handle, turn.seat.unit, turn.company) == ("dev", "Engineering", "Acme")
    assert turn.conversation.partition_key == "slack:C1"
    assert turn.conversation.conversation_identity == "slack:C1"
    assert (turn.traceparent, turn.deadline) == (trace.traceparent, START)
    assert turn.turn_id != turn_of(letter(event("a"))).turn_id


def test_events_stand_in_the_order_of_the_letters() -> None:
    turn = turn_of(letter(event("a", text="one")), letter(event("b", text="two")))
    assert [one.id for one in turn.events] == ["a", "b"]
    assert turn.text == turn.digest
    assert turn.events[0].sender == "boss"


def test_a_notification_shows_what_happened_outside() -> None:
    body = ExternalNotification(
        notification={
            "source": "github",
            "sender": "octo",
            "subject": "Broken",
            "body": "It stalls.",
            "event_type": "issues.opened",
            "metadata": {"number": 7},
        },
        why="addressed",
    )
    made = Event.new("external_notification", at=START, trace=Trace.root(), body=body)
    (shown,) = turn_of(letter(made)).events
    assert (shown.sender, shown.subject, shown.body) == ("octo", "Broken", "It stalls.")
    assert shown.metadata == {"source": "github", "event_type": "issues.opened", "number": 7}


@pytest.mark.certifies(177)
def test_of_an_unknown_type_all_that_it_has_is_shown() -> None:
    text = (
        '{"id": "e", "type": "of.tomorrow", "timestamp": "2026-03-01T10:00:00Z",'
        ' "source": "cron", "text": {"not": "text"}, "big": 1e400, "n": 123456789012345678901234,'
        ' "list": [1, "two", null]}'
    )
    turn = turn_of(read(text.encode()))
    (shown,) = turn.events
    assert shown.sender == "cron"
    assert shown.metadata == {
        "big": None,
        "n": 123456789012345678901234,
        "list": [1, "two", None],
    }
    assert msgspec.json.decode(msgspec.json.encode(turn), type=Turn).turn_id == turn.turn_id


@pytest.mark.parametrize("notification", [None, [], "text", {"metadata": "text"}, {"sender": None}])
def test_a_notification_of_another_shape_still_makes_a_turn(notification: object) -> None:
    made = Event.new(
        "external_notification",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        trace=Trace.root(),
        source="github",
        body={"notification": notification},
    )
    (shown,) = turn_of(letter(made)).events
    assert (shown.sender, shown.body) == ("github", "")
