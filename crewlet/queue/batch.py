"""What a subscriber is handed, and what it makes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import structlog
from msgspec import Struct

from actors.delivery import Ack, Defer, Delivery, Letter, Nak, Outcome, Partition
from crewlet.events import Event, decode

log = structlog.get_logger(__name__)


class Batch(Struct, frozen=True):
    """The events of one key out of one drain, by timestamp; one event for an ordinary
    subscription.

    `headroom` counts the further deliveries of the whole batch (the smallest of its events'),
    `headrooms` those of each event by its id: 0 on the last delivery, None where the broker
    did not say.
    """

    key: str
    events: tuple[Event, ...]
    headroom: int | None
    headrooms: Mapping[str, int | None]

    @property
    def event(self) -> Event:
        """The first: the only one of an ordinary subscription."""
        return self.events[0]


Handle: TypeAlias = Callable[[Batch], Awaitable[Outcome | None]]
"""The handler of a subscription. None is Ack; what it raises is a Nak with its text."""

Key: TypeAlias = Callable[[Event], str]
"""Which events belong together. What raises or answers nothing falls back to the event's own
id: a key that cannot be computed merges nothing."""


def batch_of(partition: Partition) -> Batch:
    letters = partition.letters
    return Batch(
        key=partition.key,
        events=tuple(_event(letter) for letter in letters),
        headroom=partition.headroom,
        headrooms={letter.id: letter.headroom for letter in letters},
    )


def reader(key: Key | None) -> Callable[[Delivery], Letter]:
    """How a subscription reads its deliveries: each alone without a key."""

    def read(delivery: Delivery) -> Letter:
        event = decode(delivery.body)
        return Letter(
            delivery=delivery,
            id=event.id,
            key=_key_of(event, key),
            timestamp=event.timestamp.timestamp(),
            event=event,
        )

    return read


def outcome_of(returned: Any) -> Outcome:
    """What a handler returned, as an outcome."""
    if returned is None:
        return Ack()
    if isinstance(returned, Ack | Nak | Defer):
        return returned
    return Nak(reason=f"the handler returned {type(returned).__name__}, not an outcome")


def _key_of(event: Event, key: Key | None) -> str:
    if key is not None:
        try:
            if named := key(event):
                return str(named)
        except Exception as error:
            log.warning("partition_key_failed", event_id=event.id, error=type(error).__name__)
    return f"event:{event.id}"


def _event(letter: Letter) -> Event:
    assert isinstance(letter.event, Event)
    return letter.event
