"""The runs of this node's seats as it knows them: read when a seat is taken, and changed since.

The count of what holds a seat is kept here, so that nothing has to be read to know it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import structlog

from crewlet.coordination.store import Conflict
from crewlet.errors import CrewletError, StoreUnavailable
from crewlet.inbound.work import Brakes
from crewlet.runs.row import IllegalInput, Input, Run, State, step
from crewlet.runs.store import Kept, RunStore

RUN: Final = "run"
"""The hold of a seat whose run goes on."""

TRIES: Final = 16
"""Of a change that others come before."""

log = structlog.get_logger(__name__)


class NoRun(CrewletError):
    """There is no such run."""

    code = "no_run"
    blame = "caller"


class Live:
    """The rows that are not over, by seat; and the hold, which follows from them."""

    def __init__(self, store: RunStore, brakes: Brakes) -> None:
        self._store = store
        self._brakes = brakes
        self._kept: defaultdict[str, dict[str, Kept]] = defaultdict(dict)
        self._braking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def of(self, handle: str) -> Sequence[Run]:
        return [kept.run for kept in self._kept[handle].values()]

    def holds(self, handle: str) -> bool:
        return any(run.holds for run in self.of(handle))

    def asking(self, handle: str) -> Sequence[Run]:
        return [run for run in self.of(handle) if run.state is State.ASKING]

    def begin(self, handle: str, rows: Sequence[Kept]) -> None:
        """The seat comes to this node with these."""
        self._kept[handle] = {}
        for kept in rows:
            self.know(kept)

    def know(self, kept: Kept) -> Kept:
        run = kept.run
        if run.told:
            self._kept[run.handle].pop(run.run_id, None)
        else:
            self._kept[run.handle][run.run_id] = kept
        return kept

    async def change(self, handle: str, run_id: str, given: Input, *, touch: bool = False) -> Kept:
        """Have it happen. NoRun, IllegalInput: it did not. StoreUnavailable: unknown; the same
        again is safe. `touch` writes a row also where nothing of it changes: nobody who read it
        before can write it then."""
        kept, fresh = self._kept[handle].get(run_id), False
        for _ in range(TRIES):
            if kept is None:
                kept, fresh = await self._store.get(handle, run_id), True
            if kept is None:
                self._kept[handle].pop(run_id, None)
                raise NoRun(f"there is no run {run_id!r} of {handle}; `crewlet run ls {handle}`")
            try:
                run = step(kept.run, given)
            except IllegalInput:
                self.know(kept)
                if fresh:
                    raise
                kept = None  # what we know may be old
                continue
            if run == kept.run and not touch:
                return self.know(kept)
            try:
                return self.know(await self._store.write(kept, run))
            except Conflict:
                kept = None
        raise StoreUnavailable(f"others change run {run_id} of {handle} all the time; try again")

    async def brake(self, handle: str) -> None:
        """Hold the seat, or lift the hold: as its runs want it now. TimeoutError where the seat
        is silent."""
        async with self._braking[handle]:  # of two that cross the later one sees what is true
            if self.holds(handle):
                await self._brakes.hold(handle, RUN)
            else:
                await self._brakes.lift(handle, RUN)

    async def try_to_brake(self, handle: str) -> None:
        """As `brake`; a delivery that comes all the same asks for the hold again."""
        try:
            await self.brake(handle)
        except TimeoutError:
            log.warning("run_hold_not_taken", seat=handle)
