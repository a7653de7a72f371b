"""The record of every seat that has mailboxes: written before they are made, and kept after the
company has forgotten the seat, since its name is in no file by then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from actors.ports import Clock
from crewlet.coordination.store import SEATS, Conflict, Entry, Store
from crewlet.revisions.retirement import SeatRecord, decoded, encoded, present

WORK_S: Final = 30.0
"""How long retiring one seat may take."""

WAIT_S: Final = 2 * WORK_S
"""A seat that comes back while it is retired waits for the end of that. A mark that has not changed
for so long is nobody's: whoever made it has died half way."""

LOOK_S: Final = 0.25

AT_A_TIME: Final = 64


class Known(Struct, frozen=True):
    """A record as it was read; `stored` is what the next conditional write names."""

    record: SeatRecord
    stored: int


class Roster:
    """Every verb raises StoreUnavailable where it cannot be known."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def all(self) -> Mapping[str, Known | None]:
        """By handle; None for a record that this build cannot read."""
        return {entry.key: _known(entry) for entry in await self._store.list(SEATS)}

    async def of(self, handle: str) -> Known | None:
        """None where there is none, or none that can be read."""
        entry = await self._store.get(SEATS, handle)
        return None if entry is None else _known(entry)

    async def write(self, handle: str, record: SeatRecord, after: Known | None) -> Known:
        """In the place of `after`; Conflict where it is not the last any more."""
        value = encoded(record)
        if after is None:
            return Known(record, await self._store.create(SEATS, handle, value))
        return Known(record, await self._store.update(SEATS, handle, value, after.stored))

    async def register(self, handles: Iterable[str]) -> None:
        """These seats are there: an absence is forgotten, and one that is being retired is
        waited for. To be called before a mailbox of theirs is made."""
        entries = {entry.key: entry for entry in await self._store.list(SEATS)}
        missing = [handle for handle in handles if not _is_present(entries.get(handle))]
        gate = asyncio.Semaphore(AT_A_TIME)

        async def one(handle: str) -> None:
            async with gate:
                await self._present(handle, entries.get(handle))

        await asyncio.gather(*map(one, missing))

    async def _present(self, handle: str, entry: Entry | None) -> None:
        marked, until = -1, 0.0
        while not _is_present(entry):
            known = None if entry is None else _known(entry)
            if known is not None and known.stored != marked:
                marked, until = known.stored, self._clock.monotonic() + WAIT_S
            if _is_retiring(known) and self._clock.monotonic() < until:
                await asyncio.sleep(LOOK_S)
            elif await self._is_written(handle, entry):
                return
            entry = await self._store.get(SEATS, handle)

    async def _is_written(self, handle: str, entry: Entry | None) -> bool:
        value = encoded(present(self._clock.now()))
        try:
            if entry is None:
                await self._store.create(SEATS, handle, value)
            else:
                await self._store.update(SEATS, handle, value, entry.revision)
        except Conflict:
            return False
        return True


def _known(entry: Entry) -> Known | None:
    record = decoded(entry.value)
    return None if record is None else Known(record, entry.revision)


def _is_present(entry: Entry | None) -> bool:
    known = None if entry is None else _known(entry)
    return known is not None and known.record.state == "present"


def _is_retiring(known: Known | None) -> bool:
    return known is not None and known.record.state == "retiring"
