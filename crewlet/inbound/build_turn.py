"""From a partition to the one shape that every handler gets."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from actors.delivery import Letter
from crewlet.company import Seat
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.inbound.letters import conversation_identity, event_of, partition_key
from crewlet.turn import Conversation, SeatView, Turn, TurnEvent


def build_turn(
    letters: tuple[Letter, ...],
    *,
    seat: Seat,
    company: str,
    trace: Trace,
    deadline: datetime | None,
) -> Turn:
    """One turn for the letters of one conversation, in their order."""
    first = event_of(letters[0])
    stated = [letter.headroom for letter in letters if letter.headroom is not None]
    return Turn(
        turn_id=f"turn-{uuid.uuid4()}",
        seat=SeatView(handle=seat.handle, name=seat.name, unit=seat.unit, goal=seat.goal),
        company=company,
        conversation=Conversation(
            partition_key=partition_key(first),
            conversation_identity=conversation_identity(first),
        ),
        events=tuple(_turn_event(letter) for letter in letters),
        headroom=min(stated) if stated else None,
        attempt=max(letter.delivery.count or 1 for letter in letters),
        traceparent=trace.traceparent,
        deadline=deadline,
    )


def _turn_event(letter: Letter) -> TurnEvent:
    event = event_of(letter)
    fields = _fields(event)
    return TurnEvent(
        id=event.id,
        type=event.type,
        timestamp=event.timestamp,
        sender=str(fields.get("sender") or event.source),
        subject=str(fields.get("subject") or ""),
        body=str(fields.get("body") or fields.get("text") or ""),
        metadata=_metadata(fields),
        headroom=letter.headroom,
    )


def _fields(event: Event) -> Mapping[str, Any]:
    """Where a type keeps what a handler wants to read; of an unknown type, all it has."""
    if event.type == types.EXTERNAL_NOTIFICATION:
        return event.value("notification", dict, {})
    return {key: event.value(key, object, None) for key in event.body}


def _metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A notification's own metadata and where it is from; of other types, their extras."""
    shown = ("sender", "subject", "body", "text", "metadata")
    rest = {key: value for key, value in fields.items() if key not in shown}
    nested = fields.get("metadata")
    return {**rest, **nested} if isinstance(nested, dict) else rest
