"""The fixed phrases of a skip, as the routing side knows them; said once, in crewlet.sources."""

from __future__ import annotations

from crewlet.sources.phrases import (
    GATE_REFUSED,
    NO_PARSER,
    NO_SEAT,
    PARSER_REFUSED,
    PHRASES,
    RATE_LIMITED,
    RECIPIENT_IS_HUMAN,
    SOURCE_DISCONNECTED,
    UNREADABLE_PAYLOAD,
)

__all__ = [
    "GATE_REFUSED",
    "NO_PARSER",
    "NO_SEAT",
    "PARSER_REFUSED",
    "PHRASES",
    "RATE_LIMITED",
    "RECIPIENT_IS_HUMAN",
    "SOURCE_DISCONNECTED",
    "UNREADABLE_PAYLOAD",
]
