"""A watch of the twin: what is written is heard in order, in a later turn of the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

import structlog

from crewlet.coordination.store import Entry, Heard
from crewlet.errors import StoreUnavailable

log = structlog.get_logger(__name__)


class MemoryWatch:
    """See crewlet.coordination.store.Watch. What is on its way when the store goes away is lost;
    when it comes back everything is heard again, as over a connection."""

    def __init__(self, prefix: str, heard: Heard, reached: Callable[[], bool]) -> None:
        self._prefix = prefix
        self._heard = heard
        self._reached = reached
        self._queue: deque[Entry] = deque()
        self._told: dict[str, int] = {}
        self._due = False
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.open = True

    async def begin(self, present: Iterable[Entry]) -> None:
        """Returns when these were heard; StoreUnavailable when the store went away first."""
        self.again(present)
        if not self._queue:
            return
        await asyncio.wait({self._ready})
        self._ready.result()

    def again(self, entries: Iterable[Entry]) -> None:
        """Hear all of these, whatever was heard before. Of a deletion hears only who knew."""
        for entry in sorted(entries, key=lambda entry: entry.revision):
            if not entry.gone or entry.key in self._told:
                self.tell(entry)

    def tell(self, entry: Entry) -> None:
        """Something was written."""
        if not self.open or not entry.key.startswith(self._prefix):
            return
        self._queue.append(entry)
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._pump)

    async def close(self) -> None:
        self.end()

    def end(self) -> None:
        self.open = False
        self._queue.clear()
        if not self._ready.done():
            self._ready.set_result(None)

    def _pump(self) -> None:
        self._due = False
        if not self._reached():
            self._queue.clear()
            if not self._ready.done():
                self.open = False
                self._ready.set_exception(StoreUnavailable("the coordination store went away"))
            return
        while self._queue and self.open:
            self._hear(self._queue.popleft())
        if not self._ready.done():
            self._ready.set_result(None)

    def _hear(self, entry: Entry) -> None:
        if entry.revision < self._told.get(entry.key, 0):
            return
        self._told[entry.key] = entry.revision
        try:
            self._heard(entry)
        except Exception:
            log.exception("store_watch_listener_failed", key=entry.key)
