"""Who is in a conversation: the seats that were addressed in it or that worked it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from crewlet.coordination.store import FOLLOWERS, Conflict, Entry, Store
from crewlet.errors import StoreUnavailable
from crewlet.events import catalogue as types
from crewlet.turn import TurnEvent

MOST: Final = 50
"""Followers of one conversation; the one silent for longest makes room."""

KEPT: Final = timedelta(days=30)
"""How long a seat stays a follower after its last activity, at least."""

FRESH: Final = timedelta(hours=1)
"""How long an activity stands for those that come after it: a row that says as much is not written
again, and is kept for so much longer."""

TRIES: Final = 16


class _Row(Struct):
    identity: str
    seats: dict[str, datetime]


class Seen(Struct, frozen=True):
    """Who is in a conversation, as it was read, and its row for whoever joins on top of that."""

    seats: tuple[str, ...] = ()
    entry: Entry | None = None


class Followers:
    """Kept in the coordination store. Unknown is not nobody: a read that fails raises
    StoreUnavailable, and the delivery waits until it can be read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, identity: str, *, at: datetime) -> Sequence[str]:
        """Handles in the order in which they joined; none for the empty identity."""
        return (await self.look(identity, at=at)).seats

    async def look(self, identity: str, *, at: datetime) -> Seen:
        """The same, with what `joined` spares a read by."""
        if not identity:
            return Seen()
        entry = await self._store.get(FOLLOWERS, _key(identity))
        row, _ = _decoded(entry, identity)
        return Seen(tuple(seat for seat, last in row.seats.items() if _counts(last, at)), entry)

    async def joined(
        self, identity: str, seats: Sequence[str], *, at: datetime, seen: Seen | None = None
    ) -> None:
        """These seats are in the conversation as of now. `seen` is what was just read of it: a
        write upon something older is refused, and then it is read anew."""
        if not identity or not seats:
            return
        for _ in range(TRIES):
            if seen is None:
                seen = await self.look(identity, at=at)
            row, revision = _decoded(seen.entry, identity)
            seen = None
            if all(_is_fresh(row.seats.get(seat), at) for seat in seats):
                return
            _join(row, seats, at)
            try:
                await self._write(_key(identity), msgspec.json.encode(row), revision)
            except Conflict:
                continue
            return
        raise StoreUnavailable(f"the followers of {identity} changed {TRIES} times under us")

    async def _write(self, key: str, value: bytes, revision: int | None) -> None:
        if revision is None:
            await self._store.create(FOLLOWERS, key, value)
        else:
            await self._store.update(FOLLOWERS, key, value, revision)


def joined_by_router(events: Sequence[TurnEvent], at: datetime) -> bool:
    """Whether the seat that works these is known to be in their conversation without a look: the
    router writes it down before it publishes a wake that addresses the seat."""
    return any(
        event.type == types.EXTERNAL_NOTIFICATION
        and event.addressed
        and _is_fresh(event.timestamp, at)
        for event in events
    )


def _join(row: _Row, seats: Sequence[str], at: datetime) -> None:
    for seat in seats:
        row.seats[seat] = at
    alive = [(seat, last) for seat, last in row.seats.items() if _counts(last, at)]
    surplus = max(0, len(alive) - MOST)
    silent = [seat for seat, _ in sorted(alive, key=lambda item: item[1])[:surplus]]
    row.seats = {seat: last for seat, last in alive if seat not in silent}


def _counts(last: datetime, at: datetime) -> bool:
    return at - last <= KEPT + FRESH


def _is_fresh(last: datetime | None, at: datetime) -> bool:
    return last is not None and at - last <= FRESH


def _decoded(entry: Entry | None, identity: str) -> tuple[_Row, int | None]:
    if entry is None:
        return _Row(identity, {}), None
    try:
        return msgspec.json.decode(entry.value, type=_Row), entry.revision
    except msgspec.MsgspecError as error:
        raise StoreUnavailable(f"the followers of {identity} cannot be read: {error}") from None


def _key(identity: str) -> str:
    """An identity holds slashes and more; its digest is a key."""
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
