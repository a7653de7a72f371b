"""The fixed phrases of a skip, as the routing side knows them; said once, in crewlet.sources."""

from __future__ import annotations

from crewlet.sources.phrases import (
    ALREADY_ACCEPTED,
    CONVERSATION_UNKNOWN,
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
    "ALREADY_ACCEPTED",
    "CONVERSATION_UNKNOWN",
    "GATE_REFUSED",
    "NO_PARSER",
    "NO_SEAT",
    "PARSER_REFUSED",
    "PHRASES",
    "RATE_LIMITED",
    "RECIPIENT_IS_HUMAN",
    "SOURCE_DISCONNECTED",
    "UNREADABLE_PAYLOAD",
    "accepted_before",
]


def accepted_before(delivery: str) -> str:
    """What to say of a delivery that comes a second time: what became of it, and the way out."""
    return (
        f"delivery {delivery} was accepted before and wakes nobody a second time; "
        "if its turn ended as a dead letter, `crewlet dlq replay` runs it again"
    )
