"""How many notifications a seat may get in a second: a valve against storms and loops.

It drops, so it is off unless somebody sets it. Bursts are what coalescing is for: a merged comment
is context kept, a dropped one is context lost.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from crewlet.coordination.store import RATES, Conflict, Entry, Store
from crewlet.errors import StoreUnavailable

TRIES: Final = 8
"""Writes that others came before, in a window of one second; then it is let through."""

SKEW_S: Final = 2
"""Seconds that the clocks of two nodes may differ and still count in one window."""

LET: Final = b"let"
DROPPED: Final = b"dropped"
"""What was said of a wake. It is said again for as long as its delivery comes again: that happens
every half minute at the latest, and a row lives for a minute from then on (RATES)."""

log = structlog.get_logger(__name__)


class Window(Struct, frozen=True):
    """How many were let through in a `second` since 1970."""

    second: int
    count: int


def counted(last: Window | None, second: int, limit: int) -> Window | None:
    """The window with one more in it; None where it is full. The clocks of a fleet agree but
    nearly: whoever is a little behind counts in the window that is open."""
    if last is None or not second <= last.second <= second + SKEW_S:
        return Window(second, 1)
    return Window(last.second, last.count + 1) if last.count < limit else None


class RateValve:
    """One for the whole fleet, by way of the coordination store. A store that does not answer lets
    everything through: what is dropped here is not delivered again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._one = asyncio.Lock()  # those of one node that count at once would only collide

    async def lets(self, agent_id: str, limit: int, *, wake: str, at: datetime) -> bool:
        """Whether the seat may get one more now. A limit of 0 is none, and nobody is asked.

        `wake` is the id of what it would get: a delivery that comes again, because some other
        seat could not be woken, is counted once and hears what it heard before.
        """
        if limit <= 0:
            return True
        try:
            async with self._one:
                return await self._lets(f"notify.{agent_id}", limit, f"wake.{wake}", at)
        except StoreUnavailable as error:
            log.warning("rate_not_counted", agent=agent_id, error=str(error))
        return True

    async def _lets(self, key: str, limit: int, wake: str, at: datetime) -> bool:
        """Said before it is counted: a node that dies in between lets one through uncounted,
        the other way round would count one twice."""
        said = await self._store.get(RATES, wake)
        await self._store.put(RATES, wake, LET if said is None else said.value)
        if said is not None:
            return said.value != DROPPED
        for _ in range(TRIES):
            try:
                lets = await self._counts(key, limit, int(at.timestamp()))
            except Conflict:
                continue
            if not lets:
                await self._store.put(RATES, wake, DROPPED)
            return lets
        return True

    async def _counts(self, key: str, limit: int, second: int) -> bool:
        entry = await self._store.get(RATES, key)
        window = counted(_decoded(entry), second, limit)
        if window is None:
            return False
        value = msgspec.json.encode(window)
        if entry is None:
            await self._store.create(RATES, key, value)
        else:
            await self._store.update(RATES, key, value, entry.revision)
        return True


def _decoded(entry: Entry | None) -> Window | None:
    """A row that nobody can read counts nothing, and is written over."""
    if entry is None:
        return None
    try:
        return msgspec.json.decode(entry.value, type=Window)
    except msgspec.MsgspecError:
        return None
