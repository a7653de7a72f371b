"""Dead letters, as an operator sees them: look, replay, drop."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from crewlet import topics
from crewlet.broker.port import CompanyBroker, DeadLetter
from crewlet.errors import CorruptEvent
from crewlet.events import Event, decode
from crewlet.inbound.constituent import whatever_of
from crewlet.inbound.ledger import Ledger, Worked, ledger_key, message_key

PEEKED: Final = 100
"""Messages of a mailbox among which a copy is looked for: all that a look may show."""

SEARCHED: Final = 100_000
"""Dead letters among which an event is looked for: `dlq replay --all` reads as many."""


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


async def replay(
    broker: CompanyBroker, ledger: Ledger, id: str, *, dry_run: bool, seats: Iterable[str] = ()
) -> ReplayRow:
    """Give a dead letter, by its id or its event's, a new life: the same event and trace, a new
    message, counted from zero. It leaves the list only once the broker has stored the copy; what
    the ledger holds against it is forgotten first, since an operator asked for it: raises
    StoreUnavailable where it cannot be, and nothing is published then. An event that is no dead
    letter is refused with what the ledger of `seats` says of it."""
    letter = await broker.dead_letter(id) or await _letter_of(broker, id)
    if letter is None:
        return ReplayRow(id=id, note=await _refusal(ledger, id, seats))
    event, topic = _event(letter), letter.mailbox.topic
    row = ReplayRow(id=letter.id, event_id=event.id if event else "", message_id=_new_life(letter))
    held = _held_against(letter, event)
    if dry_run:
        known = [await ledger.worked(seat, [key]) for seat, key in held]
        notes = [f"; to be forgotten: {_told(row)}" for rows in known for row in rows.values()]
        return msgspec.structs.replace(row, note=f"would go to {topic}{''.join(notes)}")
    if before := await _begun_before(broker, ledger, letter, row):
        await broker.drop_dead_letter(letter.id)
        return msgspec.structs.replace(row, note=before)
    for seat, key in held:
        await ledger.forget(seat, key)
    await _begin(ledger, letter, row)
    receipt = await broker.publish(topic, letter.body, message_id=row.message_id)
    await broker.drop_dead_letter(letter.id)
    if receipt.duplicate:
        return msgspec.structs.replace(row, note="it was replayed a moment ago")
    return msgspec.structs.replace(row, replayed=True, note=f"to {topic}")


async def _begin(ledger: Ledger, letter: DeadLetter, row: ReplayRow) -> None:
    """The letter's replay is on record before its copy is published. Raises StoreUnavailable."""
    if handle := topics.handle_of(letter.mailbox.topic):
        await ledger.record(handle, [row.message_id], turn_id=row.message_id, node="", at=letter.at)


async def _begun_before(
    broker: CompanyBroker, ledger: Ledger, letter: DeadLetter, row: ReplayRow
) -> str:
    """What became of a replay of this letter that was cut off before the letter left the list,
    empty where its copy was never stored. The broker forgets a message's id in two minutes; what
    the ledger held was forgotten when the replay began, so a row is of the second life."""
    handle = topics.handle_of(letter.mailbox.topic)
    if handle is None or not await ledger.worked(handle, [row.message_id]):
        return ""
    if worked := (await ledger.worked(handle, [row.event_id])).get(row.event_id):
        return f"it was replayed before, and {_told(worked)}"
    waiting = await broker.peek(letter.mailbox, PEEKED)
    there = any(one.message_id == row.message_id for one in waiting)
    return "it was replayed before, and waits in the mailbox" if there else ""


async def _letter_of(broker: CompanyBroker, event_id: str) -> DeadLetter | None:
    """The dead letter of an event: records and logs name the event, not the letter."""
    for letter in await broker.dead_letters(SEARCHED):
        event = _event(letter)
        if event is not None and event.id == event_id:
            return letter
    return None


async def _refusal(ledger: Ledger, id: str, seats: Iterable[str]) -> str:
    """Why there is nothing to replay. A trigger that a turn finished or gave up is settled, and
    its text is not kept here: whoever wants it done sends it again."""
    for seat in seats:
        if row := (await ledger.worked(seat, [id])).get(id):
            return (
                f"no dead letter: {_told(row)}, as the ledger's row {ledger_key(seat, id)} says; "
                f'`crewlet send {seat} "..."` asks anew'
            )
    return "no such dead letter: it was replayed, dropped or never was"


def _held_against(letter: DeadLetter, event: Event | None) -> list[tuple[str, str]]:
    """The rows of the ledger that would stop its new life: of the event, and of the message
    that a turn was shown in its thread."""
    handle = topics.handle_of(letter.mailbox.topic)
    if event is None or handle is None:
        return []
    keys = (event.id, message_key(whatever_of(event).message))
    return [(handle, key) for key in keys if key]


def _told(row: Worked) -> str:
    at = f"{row.completed_at:%Y-%m-%d %H:%M:%S} UTC"
    return f"turn {row.turn_id} on {row.node} was done with it at {at}"


def _new_life(letter: DeadLetter) -> str:
    """One id for one replay of this letter: pressed twice, it is stored once. It is not the
    id of the first life, which the broker would take for a repetition."""
    return f"replay-{letter.id}-{letter.at.timestamp():.6f}"


def _event(letter: DeadLetter) -> Event | None:
    try:
        return decode(letter.body)
    except CorruptEvent:
        return None
