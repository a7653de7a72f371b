"""One event of a partition, as it is read for a turn: who said what, when, and of which kind.

Whatever arrives alone is shown as far as it can be read; what is to be merged with others has to be
what it claims to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from crewlet.errors import CorruptEvent
from crewlet.events import Event
from crewlet.events import catalogue as types

RECON: Final = "recon"
"""A producer's extra: the event is for whoever looks around, nobody waits for an answer."""

_ADDRESSED: Final = "addressed"


class Constituent(Struct, frozen=True, kw_only=True):
    """`salient_body` is what of the body is new, None where that is all of it. `lead` stands for
    the body once something newer came. `message` is the message's identity at its source, the
    same whichever delivery tells of it; empty where the source does not say.
    """

    id: str
    type: str
    timestamp: datetime
    source: str = ""
    event_type: str = ""
    sender: str = ""
    subject: str = ""
    body: str = ""
    salient_body: str | None = None
    lead: str = ""
    message: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    recon: bool = False
    addressed: bool = True

    @property
    def salient(self) -> str:
        """What is new in it: an empty text is an answer, and means that nothing is."""
        return self.body if self.salient_body is None else self.salient_body


def constituent_of(event: Event) -> Constituent:
    """Raises CorruptEvent where a field that a reader would be shown is of another kind."""
    fields = _fields(event)
    if fields is None:
        raise CorruptEvent(f"{event.type} {event.id} holds no notification")
    try:
        return _made(event, fields, msgspec.convert(fields, _Told))
    except msgspec.ValidationError as error:
        raise CorruptEvent(f"{event.type} {event.id}: {error}") from None


def whatever_of(event: Event) -> Constituent:
    """The same of an event that stands alone: what is of another kind is left out."""
    fields = _fields(event) or {}
    read = {key: fields[key] for key in _Told.__struct_fields__ if key in fields}
    return _made(event, fields, msgspec.convert(_readable(read), _Told))


class _Told(Struct, kw_only=True):
    """What the types have in common; a missing key is an empty one."""

    source: str = ""
    event_type: str = ""
    sender: str = ""
    subject: str = ""
    body: str = ""
    text: str = ""
    salient_body: str | None = None
    lead: str = ""
    occurrence: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


_SHOWN: Final = ("sender", "subject", "body", "text", "salient_body", "metadata")


def _made(event: Event, fields: Mapping[str, Any], told: _Told) -> Constituent:
    rest = {key: value for key, value in fields.items() if key not in _SHOWN}
    metadata = {**rest, **told.metadata}
    stated = metadata.get("event_type")
    return Constituent(
        id=event.id,
        type=event.type,
        timestamp=event.timestamp,
        source=told.source or event.source,
        event_type=stated if isinstance(stated, str) and stated else event.type,
        sender=told.sender or event.source,
        subject=told.subject,
        body=told.body or told.text,
        salient_body=told.salient_body,
        lead=told.lead,
        message=told.occurrence,
        metadata=metadata,
        recon=event.extra(RECON, bool, False),
        addressed=_addressed(event),
    )


def _addressed(event: Event) -> bool:
    """Whether somebody waits for this very seat: mail that was sent to it alone is for it."""
    if event.type != types.EXTERNAL_NOTIFICATION:
        return True
    return event.value("why", str, "") == _ADDRESSED


def _fields(event: Event) -> dict[str, Any] | None:
    """Where a type keeps what a reader wants; of an unknown type, all it has. None where a
    notification is none."""
    if event.type == types.EXTERNAL_NOTIFICATION:
        return event.value("notification", dict, {}) or None
    return {key: event.value(key, object, None) for key in event.body}


def _readable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Texts and the metadata, whatever else stands in their places; a number is a text, too."""
    readable: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "metadata":
            readable[key] = value if isinstance(value, dict) else {}
        elif key == "salient_body":
            readable[key] = value if isinstance(value, str) else None
        elif value:
            readable[key] = value if isinstance(value, str) else str(value)
    return readable


def told_at(one: Constituent) -> str:
    """When it happened, by its source's own word, else by the event's."""
    try:
        return _in_utc(msgspec.convert(one.metadata.get("timestamp"), datetime))
    except msgspec.ValidationError:
        return _in_utc(one.timestamp)


def _in_utc(moment: datetime) -> str:
    """To the second. A moment at the very edge of the calendar has no UTC, and stays as it is."""
    with suppress(OverflowError):
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
