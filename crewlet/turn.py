"""The one shape that every handler gets, and the outcomes that it may return.

`crewlet schema turn` prints it as a JSON schema; a command handler reads it as JSON on stdin.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from actors.delivery import Ack, Defer, Nak, Outcome

__all__ = ["Ack", "Conversation", "Defer", "Nak", "Outcome", "SeatView", "Turn", "TurnEvent"]


class SeatView(Struct, frozen=True, kw_only=True):
    """The seat that the turn is for."""

    handle: str
    name: str
    unit: str = ""
    goal: str = ""


class Conversation(Struct, frozen=True, kw_only=True):
    """Both keys of the conversation; empty where the events belong to none."""

    partition_key: str = ""
    conversation_identity: str = ""


class TurnEvent(Struct, frozen=True, kw_only=True):
    """One constituent. `headroom` counts the further deliveries it has: 0 on the last one,
    None where the broker did not say."""

    id: str
    type: str
    timestamp: datetime
    sender: str = ""
    subject: str = ""
    body: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    headroom: int | None = None


class Turn(Struct, frozen=True, kw_only=True):
    """What a handler is asked to do, once per conversation and drain.

    `headroom` is the partition's: the smallest of its events'. `attempt` is 1 on a first try.
    `traceparent` is the W3C trace context to work under. `deadline` is when the turn times
    out (UTC), None where it never does.
    """

    turn_id: str
    seat: SeatView
    company: str
    conversation: Conversation
    events: tuple[TurnEvent, ...]
    headroom: int | None = None
    attempt: int = 1
    traceparent: str = ""
    deadline: datetime | None = None

    @property
    def text(self) -> str:
        """The events' bodies in time order: what a simple handler wants to read."""
        return "\n\n".join(event.body for event in self.events if event.body)
