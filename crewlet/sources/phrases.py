"""The fixed phrases of a skip: a reader matches them exactly, whatever else the record says."""

from __future__ import annotations

from typing import Final

UNREADABLE_PAYLOAD: Final = "unreadable payload"
SOURCE_DISCONNECTED: Final = "source disconnected"
NO_PARSER: Final = "no parser for this source"
PARSER_REFUSED: Final = "parser refused"
NO_SEAT: Final = "no seat matches this recipient"
GATE_REFUSED: Final = "routing gate refused"
RATE_LIMITED: Final = "rate limit exceeded"
RECIPIENT_IS_HUMAN: Final = "recipient is human"
ALREADY_ACCEPTED: Final = "delivery already accepted"
CONVERSATION_UNKNOWN: Final = "conversation unknown"

PHRASES: Final = (
    UNREADABLE_PAYLOAD,
    SOURCE_DISCONNECTED,
    NO_PARSER,
    PARSER_REFUSED,
    NO_SEAT,
    GATE_REFUSED,
    RATE_LIMITED,
    RECIPIENT_IS_HUMAN,
    ALREADY_ACCEPTED,
    CONVERSATION_UNKNOWN,
)
