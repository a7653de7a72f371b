"""Trace context, carried in the envelope and nowhere else (W3C: 32 and 16 hex digits)."""

from __future__ import annotations

import re
import secrets

from msgspec import Struct
from opentelemetry import trace as otel

from crewlet.events.fresh import new_span

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


class Trace(Struct, frozen=True):
    """Where an event stands in its trace: its own span and the span above."""

    trace_id: str
    span_id: str
    parent_span_id: str = ""

    @staticmethod
    def root() -> Trace:
        """A fresh trace: an event without an open span is still reachable."""
        return Trace(trace_id=secrets.token_hex(16), span_id=new_span())

    @staticmethod
    def current() -> Trace:
        """The span that is open here, else a fresh root; never empty."""
        context = otel.get_current_span().get_span_context()
        if not context.is_valid:
            return Trace.root()
        return Trace(
            trace_id=otel.format_trace_id(context.trace_id),
            span_id=otel.format_span_id(context.span_id),
        )

    @staticmethod
    def joined(traceparent: str | None) -> Trace:
        """A child of the W3C `traceparent` of an inbound request; a root where there is none."""
        match = _TRACEPARENT.fullmatch((traceparent or "").strip().lower())
        if match is None or set(match[1]) == {"0"} or set(match[2]) == {"0"}:
            return Trace.root()
        return Trace(trace_id=match[1], span_id=new_span(), parent_span_id=match[2])

    def child(self) -> Trace:
        """A new span below this one."""
        if not self.trace_id:
            return Trace.root()
        return Trace(trace_id=self.trace_id, span_id=new_span(), parent_span_id=self.span_id)

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-01"
