"""Events that nobody opened yet: what is known of them, and that nothing comes to light later."""

from __future__ import annotations

import json

import pytest
from events_bench import CORRUPT, WIRE, cut_into, thorough
from hypothesis import given
from hypothesis import strategies as st

from crewlet.errors import CorruptEvent
from crewlet.events import decode
from crewlet.events.sealed import Sealed


def wire(**more: object) -> bytes:
    return json.dumps({**WIRE, **more}).encode()


@pytest.mark.certifies(46)
@pytest.mark.parametrize("data", CORRUPT, ids=range(len(CORRUPT)))
def test_bytes_that_are_no_event_are_not_even_sealed(data: bytes) -> None:
    with pytest.raises(CorruptEvent):
        Sealed(data)


@pytest.mark.certifies(46)
@thorough
@given(st.one_of(st.binary(max_size=60), st.binary(max_size=30).map(cut_into)))
def test_what_could_be_sealed_can_be_opened(data: bytes) -> None:
    try:
        sealed = Sealed(data)
    except CorruptEvent:
        return
    assert sealed.open() == decode(data)
    assert (sealed.id, sealed.timestamp) == (
        sealed.open().id,
        sealed.open().timestamp.timestamp(),
    )


def test_it_is_opened_once() -> None:
    sealed = Sealed(wire(text="hello"))
    assert sealed.open() is sealed.open()
    assert sealed.open().value("text", str, "") == "hello"


@pytest.mark.certifies(116)
@pytest.mark.parametrize(
    "payload", [None, {}, {"key": 7}, {"key": None}, {"key": ["a"]}, {"other": "a"}]
)
def test_a_text_that_is_none_is_empty(payload: object) -> None:
    assert Sealed(wire(payload=payload)).text("key") == ""


def test_a_text_is_read_as_it_was_written() -> None:
    assert Sealed(wire(payload={"key": "straße\n"})).text("key") == "straße\n"
