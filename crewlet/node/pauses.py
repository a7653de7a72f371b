"""Who paused which seat: a fact of the fleet, not of one node.

A person's pause is a named hold that every node knows of, and every successor: it stands in the
coordination store, and whoever establishes a seat takes it before the inbox is attached.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct, structs

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
    """The last change of one seat: what it is now, who made it so, and since when. `stopped_by`
    is who had its running turn stopped as well; empty where nobody did."""

    paused: bool
    by: str
    at: datetime
    stopped_by: str = ""


Change = Callable[[Pause | None], Pause | None]
"""What a change makes of a seat's last one; None where there is nothing to change."""


class Pauses:
    """The pauses of a company, as the store has them."""

    def __init__(self, store: Store, queue: Publisher, clock: Clock) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock

    async def pause(self, handle: str, by: str, *, stop_running: bool = False) -> bool:
        """Whether this call changed it. StoreUnavailable: unknown; pausing again is safe."""

        def paused(known: Pause | None) -> Pause | None:
            if known is None or not known.paused:
                return Pause(True, by, self._clock.now(), by if stop_running else "")
            if stop_running and not known.stopped_by:
                return structs.replace(known, stopped_by=by)
            return None

        return await self._change(handle, by, paused)

    async def resume(self, handle: str, by: str) -> bool:
        """Whether this call changed it. StoreUnavailable: unknown; resuming again is safe."""

        def resumed(known: Pause | None) -> Pause | None:
            if known is None or not known.paused:
                return None
            return Pause(False, by, self._clock.now())

        return await self._change(handle, by, resumed)

    async def of(self, handle: str) -> Pause | None:
        """The pause of a seat; None where it is not paused."""
        entry = await self._store.get(PAUSES, _key(handle))
        pause = None if entry is None else decoded(entry.value)
        return pause if pause is not None and pause.paused else None

    async def holds_of(self, handle: str) -> tuple[str, ...]:
        """The holds that a seat is established with: for `SeatSpec.holds`, asked before its
        inbox is attached; a change after that is heard (crewlet.node.pause_watch).
        StoreUnavailable: do not attach; a pause that cannot be read may be there."""
        return (PAUSED,) if await self.of(handle) is not None else ()

    async def all(self) -> frozenset[str]:
        """The handles of all paused seats, in one question."""
        entries = await self._store.list(PAUSES, f"{PAUSED}.")
        return frozenset(
            handle_of(entry.key)
            for entry in entries
            if (pause := decoded(entry.value)) is not None and pause.paused
        )

    async def _change(self, handle: str, by: str, change: Change) -> bool:
        """A conditional write decides between two who press at once: one of them changed it,
        and it alone publishes that."""
        key = _key(handle)
        for _ in range(TRIES):
            entry = await self._store.get(PAUSES, key)
            wanted = change(None if entry is None else decoded(entry.value))
            if wanted is None:
                return False
            value = msgspec.json.encode(wanted)
            try:
                if entry is None:
                    await self._store.create(PAUSES, key, value)
                else:
                    await self._store.update(PAUSES, key, value, entry.revision)
            except Conflict:
                continue
            await self._publish(handle, by, wanted)
            return True
        raise StoreUnavailable(f"others change the pause of {handle} all the time; try again")

    async def _publish(self, handle: str, by: str, pause: Pause) -> None:
        kind: str
        body: SeatPaused | SeatResumed
        if pause.paused:
            stops = bool(pause.stopped_by)
            summary = f"{by} paused {handle}" + (" and stopped its turn" if stops else "")
            kind = types.SEAT_PAUSED
            body = SeatPaused(actor=by, agent_role=handle, summary=summary, stop_running=stops)
        else:
            kind = types.SEAT_RESUMED
            body = SeatResumed(actor=by, agent_role=handle, summary=f"{by} resumed {handle}")
        event = Event.new(kind, at=self._clock.now(), trace=Trace.current(), body=body)
        await self._queue.record(event)


def _key(handle: str) -> str:
    return f"{PAUSED}.{handle}"


def handle_of(key: str) -> str:
    """The seat of a row's key."""
    return key.partition(".")[2]


def decoded(value: bytes) -> Pause | None:
    """None for what a later build may have written: it is no pause of ours."""
    try:
        return msgspec.json.decode(value, type=Pause)
    except msgspec.MsgspecError:
        return None
