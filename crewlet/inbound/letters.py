"""From a delivery to a letter: which conversation it belongs to, how old it is."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from actors.delivery import Delivery, Letter
from crewlet.events import Event
from crewlet.events.sealed import Sealed

PARTITION_KEY = "partition_key"
CONVERSATION_IDENTITY = "conversation_identity"


def read(delivery: Delivery) -> Letter:
    """Raises CorruptEvent (a ValueError) on bytes that are no event. Those that are one stay
    sealed until a turn asks for them."""
    sealed = Sealed(delivery.body)
    return Letter(
        delivery=delivery,
        id=sealed.id,
        key=sealed.text(PARTITION_KEY) or f"event:{sealed.id}",
        timestamp=sealed.timestamp,
        event=sealed,
    )


def read_alone(delivery: Delivery) -> Letter:
    """As `read`, but every event is a partition of its own."""
    sealed = Sealed(delivery.body)
    return Letter(
        delivery=delivery,
        id=sealed.id,
        key=f"event:{sealed.id}",
        timestamp=sealed.timestamp,
        event=sealed,
    )


def read_together(delivery: Delivery) -> Letter:
    """As `read`, but whatever is drained is one partition: what a router wants, which looks for
    itself at what belongs together."""
    sealed = Sealed(delivery.body)
    return Letter(
        delivery=delivery,
        id=sealed.id,
        key="drained",
        timestamp=sealed.timestamp,
        event=sealed,
    )


def alone(event: Event) -> Event:
    """The same event as a partition of its own; its conversation stays what it was."""
    own = Raw(msgspec.json.encode(f"event:{event.id}"))
    return msgspec.structs.replace(event, payload={**event.payload, PARTITION_KEY: own})


def event_of(letter: Letter) -> Event:
    assert isinstance(letter.event, Sealed)
    return letter.event.open()


def partition_key(event: Event) -> str:
    """The merge unit that the producer named; empty where it named none."""
    return event.extra(PARTITION_KEY, str, "")


def conversation_identity(event: Event) -> str:
    """The durable thread that the producer named. Never derived from the partition: an event
    that names a partition and no identity names no conversation."""
    return event.extra(CONVERSATION_IDENTITY, str, "")
