"""Events on the wire: nothing lost, nothing invented, and corrupt bytes are one error."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from events_bench import CORRUPT, WIRE, cut_into, thorough
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from crewlet.errors import CorruptEvent
from crewlet.events import Event, Trace, category, decode, encode
from crewlet.events import catalogue as types
from crewlet.events.envelope import ENVELOPE_KEYS
from crewlet.events.types import RawWebhook, TaskAssigned

AT = datetime(2026, 3, 1, 10, 0, 0, 123456, tzinfo=UTC)
TRACE = Trace("a" * 32, "b" * 16, "c" * 16)

KEYS = st.text(max_size=8).filter(lambda key: key not in ENVELOPE_KEYS)
NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(2**64, 2**4000).map(str),
    st.sampled_from(["1e400", "-0.0", "0.10", "1E+2", "-1.0e-999", "3.141592653589793238462643"]),
)
"""Numbers as text: what a float would make of them is not what was written."""
VALUES = st.recursive(
    st.one_of(
        NUMBERS,
        st.booleans().map(json.dumps),
        st.just("null"),
        st.text(max_size=6).map(json.dumps),
        st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda values: f"[{', '.join(values)}]"),
        st.dictionaries(st.text(max_size=3).map(json.dumps), inner, max_size=3).map(
            lambda items: "{ " + ", ".join(f"{k}: {v}" for k, v in items.items()) + " }"
        ),
    ),
    max_leaves=8,
)
FIELDS = st.dictionaries(KEYS, VALUES, max_size=4)


def new(**more: Any) -> Event:
    return Event.new("task_assigned", **{"at": AT, "trace": TRACE, **more})


def raw(values: dict[str, Any]) -> dict[str, bytes]:
    return {key: bytes(value) for key, value in values.items()}


@pytest.mark.certifies(174, 177, 178)
@thorough
@given(FIELDS, FIELDS, st.sampled_from(["x", types.TASK_ASSIGNED]))
def test_what_this_build_does_not_know_goes_through_byte_for_byte(
    body: dict[str, str], payload: dict[str, str], event_type: str
) -> None:
    extras = "{" + ",".join(f"{json.dumps(k)}:{v}" for k, v in payload.items()) + "}"
    flat = "".join(f", {json.dumps(k)} : {v}" for k, v in body.items())
    text = json.dumps({**WIRE, "type": event_type})[:-1] + f',"payload":{extras}{flat}}}'
    first = decode(text.encode())
    again = decode(encode(first))
    assert first == again
    for event in (first, again):
        assert raw(dict(event.body)) == {key: value.encode() for key, value in body.items()}
        assert raw(dict(event.payload)) == {key: value.encode() for key, value in payload.items()}


@pytest.mark.certifies(174, 180)
@thorough
@given(
    st.builds(
        Event,
        id=st.text(min_size=1, max_size=9),
        type=st.text(min_size=1, max_size=9),
        timestamp=st.datetimes(timezones=st.just(UTC)),
        source=st.text(max_size=5),
        trace=st.builds(Trace, st.text(max_size=4), st.text(max_size=4), st.text(max_size=4)),
        delegation_depth=st.integers(-(2**63), 2**63 - 1),
        parent_turn_id=st.text(max_size=5),
        delegation_chain=st.lists(st.text(max_size=3), max_size=3).map(tuple),
        node=st.text(max_size=5),
        body=st.dictionaries(KEYS, st.just(Raw(b"1")), max_size=2),
    )
)
def test_an_envelope_survives_the_wire(event: Event) -> None:
    assert decode(encode(event)) == event


@pytest.mark.certifies(174)
def test_an_event_is_one_flat_object_with_the_envelopes_twelve_keys() -> None:
    event = new(payload={"k": 1}, body=TaskAssigned(handle="dev", text="hello"))
    wire = json.loads(encode(event))
    assert set(wire) == {*ENVELOPE_KEYS, "handle", "text", "sender", "subject"}
    assert len(ENVELOPE_KEYS) == 12
    assert event.read(TaskAssigned) == TaskAssigned(handle="dev", text="hello")


@pytest.mark.certifies(176)
@pytest.mark.parametrize("key", sorted(ENVELOPE_KEYS))
def test_a_body_cannot_take_a_key_of_the_envelope(key: str) -> None:
    event = new(body={key: "stolen", "own": 1})
    assert set(event.body) == {"own"}
    forced = msgspec.structs.replace(event, body={key: Raw(b'"stolen"')})
    assert b"stolen" not in encode(forced)
    assert key not in decode(encode(forced)).body


@pytest.mark.certifies(175)
def test_the_origin_is_stamped_on_a_copy_and_never_over_another() -> None:
    event = new()
    stamped = event.stamped("n1")
    assert (event.node, stamped.node, stamped.stamped("n2").node) == ("", "n1", "n1")
    assert event.stamped("") is event
    assert stamped.id == event.id


@pytest.mark.parametrize("text", ["2026-03-01T10:00:00", "2026-03-01T12:00:00+02:00"])
def test_a_timestamp_is_the_same_instant_in_every_zone(text: str) -> None:
    event = decode(json.dumps({**WIRE, "timestamp": text}).encode())
    assert event.timestamp == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert event.timestamp.utcoffset() in (timedelta(0), timedelta(hours=2))


# -- corrupt bytes --------------------------------------------------------------------


@pytest.mark.certifies(46)
@pytest.mark.parametrize("data", CORRUPT, ids=range(len(CORRUPT)))
def test_bytes_that_are_no_event(data: bytes) -> None:
    with pytest.raises(CorruptEvent):
        decode(data)


@pytest.mark.certifies(46)
@thorough
@given(st.one_of(st.binary(max_size=60), st.binary(max_size=30).map(lambda b: cut_into(b))))
def test_random_bytes_raise_corrupt_event_and_nothing_else(data: bytes) -> None:
    try:
        event = decode(data)
    except CorruptEvent:
        return
    assert decode(encode(event)) == event


@pytest.mark.certifies(178)
def test_a_value_that_cannot_be_read_is_the_default_and_stays_on_the_wire() -> None:
    text = json.dumps({**WIRE, "text": ["deep"], "n": 7})[:-1] + ',"big":1e400}'
    event = decode(text.encode())
    assert event.value("text", str, "none") == "none"
    assert event.value("big", object, None) is None
    assert event.value("n", str, "none") == "none"
    assert event.value("n", int, 0) == 7
    assert event.value("missing", int, 3) == 3
    assert b"1e400" in encode(event)
    with pytest.raises(CorruptEvent):
        event.read(TaskAssigned)


# -- what it is called ----------------------------------------------------------------


@pytest.mark.certifies(179)
@pytest.mark.parametrize(
    ("body", "source", "line"),
    [
        ({"summary": "dev replied", "actor": "dev"}, "github", "dev replied"),
        ({"actor": "ops", "agent_role": "dev"}, "github", "ops: task assigned"),
        ({"agent_role": "dev"}, "github", "dev: task assigned"),
        ({"agent_id": "1234"}, "github", "github: task assigned"),
        ({"agent_id": "1234"}, "", "1234: task assigned"),
        ({}, "", "system: task assigned"),
        ({"summary": 7}, "", "system: task assigned"),
    ],
)
def test_every_event_says_in_a_line_who_did_what(
    body: dict[str, Any], source: str, line: str
) -> None:
    assert new(body=body, source=source).summary == line


_TRAVELS = ("RAW_WEBHOOK", "A2A_REQUEST", "A2A_MESSAGE")


@pytest.mark.certifies(154, 155, 156, 159, 161)
def test_every_type_that_is_published_has_one_of_the_eight_categories() -> None:
    assert set(types.CATEGORIES) == {
        "lifecycle",
        "task",
        "a2a",
        "decision",
        "notification",
        "learning",
        "system",
        "webhook",
    }
    named = {
        value
        for name, value in vars(types).items()
        if name.isupper() and isinstance(value, str) and name not in _TRAVELS
    }
    assert named == set(types.published_types())
    assert {category(name) for name in named} <= set(types.CATEGORIES)
    assert category("somebody_elses") is None


@pytest.mark.certifies(158)
def test_four_types_are_filed_under_decision_and_nothing_of_the_engine_publishes_them() -> None:
    decisions = {
        "decision_requested",
        "decision_resolved",
        "contribution_requested",
        "contribution_received",
    }
    assert {category(name) for name in decisions} == {"decision"}
    assert not any(category(name) == "decision" for name in types.published_types())
    package = Path(types.__file__).parents[1]
    for path in package.rglob("*.py"):
        if path != Path(types.__file__):
            text = path.read_text(encoding="utf-8")
            assert not [name for name in decisions if name in text], path


def test_a_delivery_on_its_way_to_the_router_is_recorded_under_no_category() -> None:
    assert category(types.RAW_WEBHOOK) is None


@thorough
@given(st.binary(max_size=40))
def test_a_delivery_keeps_the_vendors_exact_bytes(body: bytes) -> None:
    event = new(body=RawWebhook.of("github", "d1", {"X-A": "b"}, body))
    read = decode(encode(event)).read(RawWebhook)
    assert (read.body, read.headers) == (body, {"X-A": "b"})
