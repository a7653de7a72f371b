"""What the fleet knows of its schedules: since when each stands, how far somebody has looked.

One row of the coordination store, written when something in it matters: an entry that comes or
goes, a look that found something. A look that found nothing may be forgotten: it would find
nothing again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct, field, structs

from crewlet.coordination.store import SCHEDULES, Store
from crewlet.errors import StoreUnavailable
from crewlet.events.schedules import FIRED, NO_MAILBOX, SKIPPED_CATCHUP
from crewlet.schedule.entry import Schedule
from crewlet.schedule.fires import SHORTEST_WINDOW, Agenda, Standing

SKEW: Final = SHORTEST_WINDOW
"""By how much the clocks of two nodes may differ. What lies further in the future was written by
a clock that has been set back since."""

KEY: Final = "scheduler"

NOBODY: Final[Mapping[str, tuple[str, ...]]] = {}


class Known(Struct, frozen=True, kw_only=True):
    """One entry: since when it has been what it is, and what became of its last instant.
    `without` are the seats it was for that had no mailbox then."""

    since: datetime
    last: str = ""
    outcome: str = ""
    without: tuple[str, ...] = ()


class Memory(Struct, frozen=True, kw_only=True):
    """`looked`: up to when everything that came due is dealt with. `entries` by their ids."""

    looked: datetime
    entries: Mapping[str, Known] = field(default_factory=dict)

    def taken_up(self, entries: Sequence[Schedule], now: datetime) -> Memory:
        """As of now, with a company of these entries: those that were not there before, or were
        something else, stand from now on."""
        return Memory(
            looked=_sane(self.looked, now),
            entries={entry.id: _known(self.entries.get(entry.id), now) for entry in entries},
        )

    def standing(self, entries: Sequence[Schedule]) -> list[Standing]:
        return [Standing(entry, self.entries[entry.id].since) for entry in entries]

    def after(
        self, found: Agenda, now: datetime, without: Mapping[str, tuple[str, ...]] = NOBODY
    ) -> Memory:
        """Once all of it is dealt with. `without`: by entries, whose tasks had no inbox."""
        entries = dict(self.entries)
        for missed in found.missed:
            id, last = missed.entry.id, missed.fires[-1].label
            entries[id] = Known(since=entries[id].since, last=last, outcome=SKIPPED_CATCHUP)
        for fire in found.due:
            id, whose = fire.entry.id, without.get(fire.entry.id, ())
            entries[id] = Known(
                since=entries[id].since,
                last=fire.label,
                outcome=NO_MAILBOX if whose else FIRED,
                without=whose,
            )
        return Memory(looked=max(self.looked, now), entries=entries)


class Memories:
    """The row, as one node reads and writes it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._revision: int | None = None

    async def read(self) -> Memory | None:
        """None where nobody has looked yet. StoreUnavailable: unknown, nothing may fire."""
        entry = await self._store.get(SCHEDULES, KEY)
        self._revision = None if entry is None else entry.revision
        if entry is None:
            return None
        try:
            return msgspec.json.decode(entry.value, type=Memory)
        except msgspec.MsgspecError as error:
            raise StoreUnavailable(f"what is known of schedules cannot be read: {error}") from None

    async def write(self, memory: Memory) -> None:
        """Over what was read last. Conflict: another node does this duty now."""
        value = msgspec.json.encode(memory)
        if self._revision is None:
            self._revision = await self._store.create(SCHEDULES, KEY, value)
        else:
            self._revision = await self._store.update(SCHEDULES, KEY, value, self._revision)


def _known(known: Known | None, now: datetime) -> Known:
    if known is None:
        return Known(since=now)
    return structs.replace(known, since=_sane(known.since, now))


def _sane(at: datetime, now: datetime) -> datetime:
    """A moment of the past, give or take a skew; else now."""
    return now if at - now > SKEW else at
