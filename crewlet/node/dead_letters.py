"""Dead letters, as an operator sees them: look, replay, drop."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from crewlet import topics
from crewlet.broker.port import CompanyBroker, DeadLetter
from crewlet.errors import CorruptEvent
from crewlet.events import Event, decode
from crewlet.inbound.constituent import whatever_of
from crewlet.inbound.ledger import Ledger, message_key


class LetterRow(Struct, frozen=True, kw_only=True):
    """A dead letter in a listing."""

    id: str
    handle: str
    topic: str
    group: str
    reason: str
    deliveries: int
    at: datetime
    event_id: str
    type: str
    size: int


class ReplayRow(Struct, frozen=True, kw_only=True):
    """What became of one replay; `message_id` is that of the new life."""

    id: str
    event_id: str = ""
    message_id: str = ""
    replayed: bool = False
    note: str = ""


def row_of(letter: DeadLetter) -> LetterRow:
    event = _event(letter)
    return LetterRow(
        id=letter.id,
        handle=topics.handle_of(letter.mailbox.topic) or "",
        topic=letter.mailbox.topic,
        group=letter.mailbox.group,
        reason=letter.reason,
        deliveries=letter.deliveries,
        at=letter.at,
        event_id=event.id if event else "",
        type=event.type if event else "",
        size=len(letter.body),
    )


def shown(letter: DeadLetter) -> dict[str, Any]:
    """The row, and the event itself: as JSON where it is some, as text where it is not."""
    row: dict[str, Any] = msgspec.to_builtins(row_of(letter))
    if _event(letter) is not None:
        row["event"] = msgspec.Raw(letter.body)
    else:
        row["event"] = letter.body.decode("utf-8", "replace")
    return row


async def replay(broker: CompanyBroker, ledger: Ledger, id: str, *, dry_run: bool) -> ReplayRow:
    """Give a dead letter a new life: the same event and trace, a new message, counted from
    zero. It leaves the list only once the broker has stored the copy; what the ledger holds
    against it is forgotten, since an operator asked for it."""
    letter = await broker.dead_letter(id)
    if letter is None:
        return ReplayRow(id=id, note="no such dead letter: it was replayed, dropped or never was")
    event = _event(letter)
    row = ReplayRow(id=id, event_id=event.id if event else "", message_id=_new_life(letter))
    if dry_run:
        return msgspec.structs.replace(row, note=f"would go to {letter.mailbox.topic}")
    handle = topics.handle_of(letter.mailbox.topic)
    if event is not None and handle is not None:
        await ledger.forget(handle, event.id)
        if message := message_key(whatever_of(event).message):
            await ledger.forget(handle, message)
    receipt = await broker.publish(letter.mailbox.topic, letter.body, message_id=row.message_id)
    await broker.drop_dead_letter(id)
    if receipt.duplicate:
        return msgspec.structs.replace(row, note="it was replayed a moment ago")
    return msgspec.structs.replace(row, replayed=True, note=f"to {letter.mailbox.topic}")


def _new_life(letter: DeadLetter) -> str:
    """One id for one replay of this letter: pressed twice, it is stored once. It is not the
    id of the first life, which the broker would take for a repetition."""
    return f"replay-{letter.id}-{letter.at.timestamp():.6f}"


def _event(letter: DeadLetter) -> Event | None:
    try:
        return decode(letter.body)
    except CorruptEvent:
        return None
