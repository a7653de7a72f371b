"""Trace context: carried in the envelope, joined from outside, never absent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import trace as otel
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from crewlet.events import Trace

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE_ID}-{SPAN_ID}-01"


def is_whole(trace: Trace) -> bool:
    return re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", trace.traceparent) is not None


@pytest.mark.certifies(203)
def test_a_root_is_a_trace_of_its_own() -> None:
    one, other = Trace.root(), Trace.root()
    assert is_whole(one)
    assert one.trace_id != other.trace_id
    assert one.parent_span_id == ""


@pytest.mark.certifies(202)
def test_a_child_stays_in_the_trace_below_its_parent() -> None:
    root = Trace.root()
    child = root.child()
    assert (child.trace_id, child.parent_span_id) == (root.trace_id, root.span_id)
    assert child.span_id not in (root.span_id, root.child().span_id)


@pytest.mark.certifies(203)
def test_a_child_of_an_event_without_a_trace_starts_one() -> None:
    assert is_whole(Trace("", "").child())


@pytest.mark.certifies(201)
@pytest.mark.parametrize("header", [HEADER, f" {HEADER}\r\n", HEADER.upper(), HEADER[:-2] + "00"])
def test_a_request_that_names_a_trace_is_joined(header: str) -> None:
    joined = Trace.joined(header)
    assert (joined.trace_id, joined.parent_span_id) == (TRACE_ID, SPAN_ID)
    assert joined.span_id != SPAN_ID
    assert is_whole(joined)


@pytest.mark.certifies(201)
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "garbage",
        HEADER[1:],
        HEADER + "0",
        f"ff-{TRACE_ID}-{SPAN_ID}-01",
        f"00-{'0' * 32}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{'0' * 16}-01",
        HEADER.replace("4b", "4g"),
    ],
)
def test_a_request_that_names_none_starts_one(header: str | None) -> None:
    joined = Trace.joined(header)
    assert joined.trace_id != TRACE_ID
    assert joined.parent_span_id == ""
    assert is_whole(joined)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_whatever_a_header_says_the_trace_is_whole(header: str) -> None:
    assert is_whole(Trace.joined(header))


@pytest.mark.certifies(203, 204)
def test_the_span_that_is_open_here_is_the_events_own() -> None:
    context = SpanContext(int(TRACE_ID, 16), int(SPAN_ID, 16), True, TraceFlags(1))
    with otel.use_span(NonRecordingSpan(context)):
        assert Trace.current() == Trace(TRACE_ID, SPAN_ID)
    assert Trace.current().trace_id != TRACE_ID
    assert is_whole(Trace.current())
