"""The event envelope: one flat JSON object, its own keys typed, all others kept verbatim.

Changes are additive only. A key that this build does not know - of an unknown type, or of a
known one - goes through a relay byte for byte, because it is never decoded: numbers of any
size included.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from crewlet.errors import CorruptEvent
from crewlet.events.fresh import new_id
from crewlet.events.trace import Trace

T = TypeVar("T")
Kind: TypeAlias = type[T]
"""`type[T]`, spelled so because an event has a field named `type`."""

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024
"""The largest event that is published (docs/contract.md 49)."""


class Event(Struct, frozen=True, kw_only=True):
    """A record of what happened.

    `payload` is a free map of extras; `body` holds the fields of the event's own type, flat
    beside the envelope on the wire. `node` is the origin: stamped by the queue, never by the
    publisher, never overwritten.
    """

    id: str
    type: str
    timestamp: datetime
    source: str = ""
    payload: Mapping[str, Raw] = field(default_factory=dict)
    trace: Trace
    delegation_depth: int = 0
    parent_turn_id: str = ""
    delegation_chain: tuple[str, ...] = ()
    node: str = ""
    body: Mapping[str, Raw] = field(default_factory=dict)

    @staticmethod
    def new(
        event_type: str,
        *,
        at: datetime,
        trace: Trace,
        id: str = "",
        source: str = "",
        payload: Mapping[str, object] | None = None,
        body: Struct | Mapping[str, object] | None = None,
        delegation_depth: int = 0,
        delegation_chain: tuple[str, ...] = (),
        parent_turn_id: str = "",
    ) -> Event:
        """A new event at `at` (UTC). A body key that the envelope owns is dropped."""
        fields = msgspec.to_builtins(body) if body is not None else {}
        return Event(
            id=id or new_id(),
            type=event_type,
            timestamp=at,
            source=source,
            payload=_raw(payload or {}),
            trace=trace,
            delegation_depth=delegation_depth,
            delegation_chain=delegation_chain,
            parent_turn_id=parent_turn_id,
            body={k: v for k, v in _raw(fields).items() if k not in ENVELOPE_KEYS},
        )

    def extra(self, key: str, kind: Kind[T], default: T) -> T:
        """A value of `payload`, or `default` where it is missing or of another kind."""
        return _read(self.payload, key, kind, default)

    def value(self, key: str, kind: Kind[T], default: T) -> T:
        """A value of `body`, or `default` where it is missing or of another kind."""
        return _read(self.body, key, kind, default)

    def read(self, kind: Kind[T]) -> T:
        """The typed body. Raises CorruptEvent where it does not fit `kind`."""
        try:
            return msgspec.json.decode(msgspec.json.encode(self.body), type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise CorruptEvent(f"the body of {self.type} {self.id}: {error}") from None

    def stamped(self, node: str) -> Event:
        """This event, or a copy that names its origin where it named none."""
        return self if self.node or not node else msgspec.structs.replace(self, node=node)

    @property
    def summary(self) -> str:
        """Who did what, in a person's words: the event's own sentence, else its type."""
        return self.value("summary", str, "") or f"{self.actor}: {self.type.replace('_', ' ')}"

    @property
    def actor(self) -> str:
        """Override, role, source, agent id, `system`: the first that is stated."""
        for key in ("actor", "agent_role"):
            if named := self.value(key, str, ""):
                return named
        return self.source or self.value("agent_id", str, "") or "system"


class Wire(Struct, kw_only=True):
    """The keys that the envelope owns, as they stand on the wire."""

    id: str
    type: str
    timestamp: datetime
    source: str | None = None
    payload: dict[str, Raw] | None = None
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    delegation_depth: int = 0
    parent_turn_id: str = ""
    delegation_chain: tuple[str, ...] = ()
    node: str = ""


ENVELOPE_KEYS: Final = frozenset(Wire.__struct_fields__)

_encoder: Final = msgspec.json.Encoder()
_fields: Final = msgspec.json.Decoder(dict[str, Raw])
_wire: Final = msgspec.json.Decoder(Wire)


def encode(event: Event) -> bytes:
    """The event's bytes: the envelope's keys first, then the body's."""
    wire: dict[str, object] = {
        "id": event.id,
        "type": event.type,
        "timestamp": event.timestamp,
        "source": event.source,
        "payload": event.payload,
        "trace_id": event.trace.trace_id,
        "span_id": event.trace.span_id,
        "parent_span_id": event.trace.parent_span_id,
        "delegation_depth": event.delegation_depth,
        "parent_turn_id": event.parent_turn_id,
        "delegation_chain": event.delegation_chain,
        "node": event.node,
    }
    for key, value in event.body.items():
        wire.setdefault(key, value)
    return _encoder.encode(wire)


def decode(data: bytes) -> Event:
    """The inverse of `encode`. Raises CorruptEvent on bytes that are no event. A timestamp
    without an offset is UTC: no node's own zone decides what is older."""
    return opened(read_wire(data), data)


def read_wire(data: bytes) -> Wire:
    """The envelope's own keys. Raises CorruptEvent on bytes that are no event: all of them are
    looked at, so that `opened` finds nothing new."""
    try:
        data.decode()  # what is kept verbatim is never read: nobody else would look at its text
        wire = _wire.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise CorruptEvent(f"not an event: {error}") from None
    if not wire.id or not wire.type:
        raise CorruptEvent("not an event: it has no id or no type")
    return wire


def at(wire: Wire) -> datetime:
    """When it happened."""
    stated = wire.timestamp
    return stated if stated.tzinfo else stated.replace(tzinfo=UTC)


def opened(wire: Wire, data: bytes) -> Event:
    """The event of `data`, whose envelope was read already."""
    try:
        fields = _fields.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CorruptEvent(f"not an event: {error}") from None
    return Event(
        id=wire.id,
        type=wire.type,
        timestamp=at(wire),
        source=wire.source or "",
        payload=wire.payload or {},
        trace=Trace(
            trace_id=wire.trace_id, span_id=wire.span_id, parent_span_id=wire.parent_span_id
        ),
        delegation_depth=wire.delegation_depth,
        parent_turn_id=wire.parent_turn_id,
        delegation_chain=wire.delegation_chain,
        node=wire.node,
        body={key: value for key, value in fields.items() if key not in ENVELOPE_KEYS},
    )


def _raw(values: Mapping[str, object]) -> dict[str, Raw]:
    return {
        key: value if isinstance(value, Raw) else Raw(_encoder.encode(value))
        for key, value in values.items()
    }


def _read(values: Mapping[str, Raw], key: str, kind: Kind[T], default: T) -> T:
    value = values.get(key)
    if value is None:
        return default
    try:
        return msgspec.json.decode(value, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return default
