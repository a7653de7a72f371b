"""The completion ledger: what a finished turn worked is not worked again, on any node.

Keyed on the ids of the constituents, never on a merged event's; and on the messages that a turn was
shown in its thread, each by its identity at its source. Its safe direction is to run the work:
a ledger that does not answer hides nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec
import structlog
from msgspec import Struct

from actors.delivery import Fence
from crewlet.coordination.store import LEDGER, Conflict, Store
from crewlet.errors import StoreUnavailable

log = structlog.get_logger(__name__)


class Worked(Struct, frozen=True):
    """Which turn worked a trigger, and when. `event_id` may be a `message_key`."""

    turn_id: str
    event_id: str
    node: str
    completed_at: datetime


class Ledger:
    """Rows of (seat, event id), kept for seven days; the first writer wins."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def worked(self, seat: str, event_ids: Sequence[str]) -> dict[str, Worked]:
        """The rows of those ids that a turn finished. Unreadable: none of them."""
        try:
            if len(event_ids) == 1:  # nearly always, and one alone needs no task
                rows = [await self._row(seat, event_ids[0])]
            else:
                rows = await asyncio.gather(*(self._row(seat, id) for id in event_ids))
        except StoreUnavailable as error:
            log.warning("ledger_unreadable", seat=seat, error=str(error))
            return {}
        return {id: row for id, row in zip(event_ids, rows, strict=True) if row is not None}

    async def has(self, seat: str, event_id: str) -> bool:
        """Whether a turn finished it, for those who may not err: StoreUnavailable is unknown."""
        return await self._row(seat, event_id) is not None

    async def _row(self, seat: str, event_id: str) -> Worked | None:
        entry = await self._store.get(LEDGER, ledger_key(seat, event_id))
        if entry is None:
            return None
        try:
            return msgspec.json.decode(entry.value, type=Worked)
        except msgspec.MsgspecError:
            log.error("ledger_row_unreadable", seat=seat, key=entry.key)
            return None

    async def record(
        self,
        seat: str,
        event_ids: Sequence[str],
        *,
        turn_id: str,
        node: str,
        at: datetime,
        fence: Fence | None = None,
    ) -> None:
        """Write a row for each id; a row that is there stays, whichever turn wrote it.

        With a fence all rows are written in one go, while the seat is still ours: Fenced says
        that it is not, and that nothing was written nor will be. Raises StoreUnavailable while
        some row is not known to be written: the caller must not acknowledge then.
        """
        rows = [Worked(turn_id, event_id, node, at) for event_id in event_ids]
        if fence is None:
            await asyncio.gather(*(self._write(seat, row) for row in rows))
        else:
            await self._fenced(seat, rows, fence)

    async def _fenced(self, seat: str, rows: Sequence[Worked], fence: Fence) -> None:
        left = {ledger_key(seat, row.event_id): msgspec.json.encode(row) for row in rows}
        while left:
            try:
                await self._store.record(LEDGER, left, fence)
            except Conflict as conflict:
                there = left.keys() & set(conflict.keys)
                log.info("ledger_rows_exist", seat=seat, keys=sorted(there))
                if not there:
                    raise StoreUnavailable("the store refused rows and named none") from conflict
                left = {key: row for key, row in left.items() if key not in there}
            else:
                return

    async def _write(self, seat: str, row: Worked) -> None:
        try:
            key = ledger_key(seat, row.event_id)
            await self._store.create(LEDGER, key, msgspec.json.encode(row))
        except Conflict:
            log.info("ledger_row_exists", seat=seat, event_id=row.event_id)

    async def forget(self, seat: str, event_id: str) -> None:
        """An operator replays the event: it may be worked once more."""
        await self._store.delete(LEDGER, ledger_key(seat, event_id))


def message_key(message: str) -> str:
    """The id in the ledger of a message by its identity (`slack:C9:1718.002`), no event's own;
    empty for the empty identity."""
    return f"message:{message}" if message else ""


def ledger_key(seat: str, event_id: str) -> str:
    """The key of a row. An event id is whatever its publisher chose; a key is not."""
    return f"{seat}.{hashlib.sha256(event_id.encode()).hexdigest()[:32]}"
