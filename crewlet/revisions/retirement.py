"""What becomes of a seat that the company has not any more: a pure decision on one record.

A mailbox keeps mail for as long as it exists, so one that nobody will ever read again has to go -
but never on a mistake: a day passes first, in which a revision that brings the seat back finds its
mail, and whoever does not know asks nothing of anybody.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

GRACE: Final = timedelta(hours=24)
"""From the first time that the absence was seen (docs/contract.md 149)."""

State: TypeAlias = Literal["present", "absent", "retiring", "retired"]


class SeatRecord(Struct, frozen=True, kw_only=True):
    """A seat that has, or had, mailboxes. `since` is when it came into its state; `absent_since`
    when it was first seen to be absent, kept until it is back. `by` marks whose retirement it is;
    `mail` is how many messages go, or went, with it."""

    state: State
    since: datetime
    absent_since: datetime | None = None
    by: str = ""
    mail: int = 0


class Retire(Struct, frozen=True):
    """Its time is over, or somebody began and did not end it."""


def next_step(
    record: SeatRecord | None, *, wanted: bool, listed: bool, now: datetime
) -> SeatRecord | Retire | None:
    """The record to write, or that the seat is to be retired, or nothing. `wanted`: the active
    revision has it; `listed`: the broker has a mailbox of it. Only to be asked by whoever knows
    both for certain."""
    if wanted:
        return None if record is not None and record.state == "present" else present(now)
    if record is None or record.state == "present":
        return absent(now)
    match record.state:
        case "absent":
            since = record.absent_since or record.since
            return Retire() if now - since >= GRACE else None
        case "retiring":
            return Retire()
        case "retired":
            return absent(now) if listed else None
    raise AssertionError(f"{record.state} is no state of a seat")


def present(now: datetime) -> SeatRecord:
    return SeatRecord(state="present", since=now)


def absent(now: datetime) -> SeatRecord:
    return SeatRecord(state="absent", since=now, absent_since=now)


def retiring(record: SeatRecord, *, by: str, now: datetime, mail: int = 0) -> SeatRecord:
    """Marked before anything of it is destroyed, and anew before each thing that is: whoever finds
    the mark ends what was begun, and knows how much there was at first."""
    since = record.absent_since or record.since
    mail = max(mail, record.mail)
    return SeatRecord(state="retiring", since=now, absent_since=since, by=by, mail=mail)


def spared(record: SeatRecord) -> SeatRecord:
    """The mark is taken off again: it has been absent for as long as before."""
    since = record.absent_since or record.since
    return SeatRecord(state="absent", since=since, absent_since=since)


def retired(record: SeatRecord, *, now: datetime) -> SeatRecord:
    """What is left: a line that says when, and how much went."""
    since, mail = record.absent_since, record.mail
    return SeatRecord(state="retired", since=now, absent_since=since, mail=mail)


def encoded(record: SeatRecord) -> bytes:
    return msgspec.json.encode(record)


def decoded(value: bytes) -> SeatRecord | None:
    """None for what this build cannot read; such a seat is left alone."""
    try:
        return msgspec.json.decode(value, type=SeatRecord)
    except msgspec.MsgspecError:
        return None
