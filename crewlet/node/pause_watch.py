"""A node hears of pauses, whichever node a person paused a seat from.

The verb brakes the node that it runs on; this one is for the case that the seat is on another, or
on its way here: what was read of it before its inbox was attached may have changed meanwhile.
What is heard is looked up again before it is acted on: a watch may lag behind the verb.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from actors.machines.signals import Hold, Lift
from actors.runtime import SeatRuntime
from actors.seat import INBOX
from crewlet.coordination.store import PAUSES, Entry, Store, Watch
from crewlet.errors import StoreUnavailable
from crewlet.inbound.running import Turns
from crewlet.node.pauses import PAUSED, Pauses, decoded, handle_of

AGAIN_S: Final = 5.0
"""After a store or a seat that did not answer."""

log = structlog.get_logger(__name__)


class PauseWatch:
    """Started before the node's seats, so that no change is heard by nobody; what it hears until
    `stop` is done one after another."""

    def __init__(
        self, store: Store, pauses: Pauses, turns: Turns, runtime: Callable[[], SeatRuntime]
    ) -> None:
        self._store = store
        self._pauses = pauses
        self._turns = turns
        self._runtime = runtime
        self._changed: asyncio.Queue[str] = asyncio.Queue()
        self._absent: set[str] = set()
        self._following: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._following = asyncio.ensure_future(self._follow())

    async def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def established(self, handle: str) -> None:
        """The seat is here now. What was heard of it while it was not is done again."""
        if handle in self._absent:
            self._changed.put_nowait(handle)

    async def _follow(self) -> None:
        watch, loop = await self._watch(), asyncio.get_running_loop()
        try:
            while True:
                handle = await self._changed.get()
                if not await self._obey(handle):
                    loop.call_later(AGAIN_S, self._changed.put_nowait, handle)
        finally:
            await watch.close()

    async def _watch(self) -> Watch:
        """All rows are heard then, also those that were written meanwhile."""
        while True:
            try:
                return await self._store.watch(PAUSES, f"{PAUSED}.", self._heard)
            except StoreUnavailable as error:
                log.warning("pauses_not_watched", error=str(error))
                await asyncio.sleep(AGAIN_S)

    def _heard(self, entry: Entry) -> None:
        if not entry.gone and decoded(entry.value) is not None:
            self._changed.put_nowait(handle_of(entry.key))

    async def _obey(self, handle: str) -> bool:
        """What the row says now, where the seat is here; False where that is not known."""
        self._absent.add(handle)  # it may come at any moment from now on
        try:
            pause = await self._pauses.of(handle)
            brake = Lift(PAUSED) if pause is None else Hold(PAUSED)
            braked = await self._runtime().brake(handle, INBOX, brake)
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("pause_not_obeyed", seat=handle, error=str(error))
            return False
        if braked is not None:
            self._absent.discard(handle)
        if pause is None:
            self._turns.go_on(handle)
        elif braked is not None and pause.stopped_by:
            self._turns.halt(handle, pause.stopped_by)
        return True
