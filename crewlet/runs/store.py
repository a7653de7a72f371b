"""The rows of runs in the coordination store: conditional writes, answered yes, no or unknown."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
import structlog
from msgspec import Struct

from crewlet.coordination.store import RUNS, Entry, Store
from crewlet.errors import CrewletError
from crewlet.runs.row import Run

log = structlog.get_logger(__name__)


class HoldsReply(CrewletError):
    """The row may not go: it still has a reply that no turn took."""

    code = "holds_reply"
    blame = "caller"


class Kept(Struct, frozen=True):
    """A row as the store has it; `revision` is named in its next write."""

    run: Run
    revision: int


class RunStore:
    """Each verb answers with its result, with None or Conflict, or raises StoreUnavailable: not
    known, and trying again is safe."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, handle: str, run_id: str) -> Kept | None:
        """The row; None where there is none."""
        entry = await self._store.get(RUNS, key_of(handle, run_id))
        return None if entry is None else _kept(entry)

    async def list(self, handle: str = "") -> Sequence[Kept]:
        """Every row of a seat, or of all seats, the oldest first."""
        entries = await self._store.list(RUNS, f"{handle}." if handle else "")
        kept = [found for entry in entries if (found := _kept(entry)) is not None]
        return sorted(kept, key=lambda one: (one.run.opened_at, one.run.run_id))

    async def create(self, run: Run) -> Kept:
        """Conflict where there is such a row."""
        key = key_of(run.handle, run.run_id)
        return Kept(run, await self._store.create(RUNS, key, msgspec.json.encode(run)))

    async def write(self, before: Kept, run: Run) -> Kept:
        """Conflict where the row is not the one that was read any more."""
        key, value = key_of(run.handle, run.run_id), msgspec.json.encode(run)
        return Kept(run, await self._store.update(RUNS, key, value, before.revision))

    async def delete(self, kept: Kept) -> None:
        """Only what is over and told: nothing can come to it any more. HoldsReply for a row
        with an outbox that is not empty, whatever else it is."""
        run = kept.run
        if run.outbox is not None:
            raise HoldsReply(f"run {run.run_id} of {run.handle} has a reply that nobody took")
        if not run.told:
            raise ValueError(f"run {run.run_id} of {run.handle} is not over")
        await self._store.delete(RUNS, key_of(run.handle, run.run_id))


def key_of(handle: str, run_id: str) -> str:
    """A run's id is whatever its handler chose; a key is not."""
    return f"{handle}.{hashlib.sha256(run_id.encode()).hexdigest()[:32]}"


def _kept(entry: Entry) -> Kept | None:
    """None for what a later build may have written: passed over, and said."""
    try:
        return Kept(msgspec.json.decode(entry.value, type=Run), entry.revision)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        log.error("run_row_unreadable", key=entry.key, error=str(error))
        return None
