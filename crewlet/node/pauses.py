"""Who paused which seat: a fact of the fleet, not of one node.

A person's pause is a named hold that every node knows of, and every successor: it stands in the
coordination store, and whoever establishes a seat takes it before the inbox is attached.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from actors.ports import Clock
from crewlet.coordination.store import PAUSES, Conflict, Store
from crewlet.errors import StoreUnavailable
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.types import SeatPaused, SeatResumed
from crewlet.queue import Publisher

PAUSED: Final = "paused"
"""The hold of a paused seat, and the first token of its key."""

TRIES: Final = 8
"""Of a change that others come before: that many people press at the same moment."""


class Pause(Struct, frozen=True):
    """The last change of one seat: what it is now, who made it so, and since when."""

    paused: bool
    by: str
    at: datetime


class Pauses:
    """The pauses of a company, as the store has them."""

    def __init__(self, store: Store, queue: Publisher, clock: Clock) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock

    async def pause(self, handle: str, by: str) -> bool:
        """Whether this call changed it. StoreUnavailable: unknown; pausing again is safe."""
        return await self._change(handle, by, paused=True)

    async def resume(self, handle: str, by: str) -> bool:
        """Whether this call changed it. StoreUnavailable: unknown; resuming again is safe."""
        return await self._change(handle, by, paused=False)

    async def of(self, handle: str) -> Pause | None:
        """The pause of a seat; None where it is not paused."""
        entry = await self._store.get(PAUSES, _key(handle))
        pause = None if entry is None else _decoded(entry.value)
        return pause if pause is not None and pause.paused else None

    async def holds_of(self, handle: str) -> tuple[str, ...]:
        """The holds that a seat is established with: for `SeatSpec.holds`, asked before its
        inbox is attached - and once more after, since a pause that was written in between was
        told to nobody. StoreUnavailable: do not attach; a pause that cannot be read may be
        there."""
        return (PAUSED,) if await self.of(handle) is not None else ()

    async def all(self) -> frozenset[str]:
        """The handles of all paused seats, in one question."""
        entries = await self._store.list(PAUSES, f"{PAUSED}.")
        return frozenset(
            entry.key.partition(".")[2]
            for entry in entries
            if (pause := _decoded(entry.value)) is not None and pause.paused
        )

    async def _change(self, handle: str, by: str, *, paused: bool) -> bool:
        """A conditional write decides between two who press at once: one of them changed it,
        and it alone publishes that."""
        key, wanted = _key(handle), Pause(paused, by, self._clock.now())
        for _ in range(TRIES):
            entry = await self._store.get(PAUSES, key)
            known = None if entry is None else _decoded(entry.value)
            if (known is not None and known.paused) == paused:
                return False
            value = msgspec.json.encode(wanted)
            try:
                if entry is None:
                    await self._store.create(PAUSES, key, value)
                else:
                    await self._store.update(PAUSES, key, value, entry.revision)
            except Conflict:
                continue
            await self._publish(handle, by, paused=paused)
            return True
        raise StoreUnavailable(f"others change the pause of {handle} all the time; try again")

    async def _publish(self, handle: str, by: str, *, paused: bool) -> None:
        kind: str = types.SEAT_PAUSED if paused else types.SEAT_RESUMED
        body: type[SeatPaused] | type[SeatResumed] = SeatPaused if paused else SeatResumed
        summary = f"{by} {'paused' if paused else 'resumed'} {handle}"
        event = Event.new(
            kind,
            at=self._clock.now(),
            trace=Trace.current(),
            body=body(actor=by, agent_role=handle, summary=summary),
        )
        await self._queue.record(event)


def _key(handle: str) -> str:
    return f"{PAUSED}.{handle}"


def _decoded(value: bytes) -> Pause | None:
    """None for what a later build may have written: it is no pause of ours."""
    try:
        return msgspec.json.decode(value, type=Pause)
    except msgspec.MsgspecError:
        return None
