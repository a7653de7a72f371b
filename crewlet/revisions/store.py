"""Where revisions are kept: the active one under one key, those before it each under its own.

Activating is one conditional write, so that there is always exactly one that is active and nobody
can undo what somebody else has applied meanwhile. The active one is copied to the past before
another takes its place: whatever dies in between, no revision is missing and none is there that
never was active.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from msgspec import Struct

from actors.failpoints import reached
from crewlet.coordination.store import CONFIG, Conflict, Entry, Store
from crewlet.errors import StoreUnavailable
from crewlet.revisions.revision import Revision, decoded, encoded

ACTIVE: Final = "active"
PAST: Final = "past."

KEPT: Final = 100
"""Revisions of the past that can still be looked at."""


class Active(Struct, frozen=True):
    """The active revision, and what the next conditional write has to name."""

    revision: Revision
    stored: int


class Revisions:
    """Of the company on this broker. Every verb raises StoreUnavailable for what it cannot know,
    a revision that only a later build can read among it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def active(self) -> Active | None:
        """None where no revision was ever applied."""
        entry = await self._store.get(CONFIG, ACTIVE)
        return None if entry is None else Active(_read(entry), entry.revision)

    async def activate(self, revision: Revision, after: Active | None) -> None:
        """Make it the active one, in the place of `after`. Conflict where that is not active any
        more: nothing was changed. StoreUnavailable: unknown; look before you say it again."""
        if after is None:
            await self._store.create(CONFIG, ACTIVE, encoded(revision))
            return
        with suppress(Conflict):  # a try before this one has copied it
            await self._store.create(CONFIG, _key(after.revision), encoded(after.revision))
        reached("mid_config_apply")
        await self._store.update(CONFIG, ACTIVE, encoded(revision), after.stored)
        await self._forget(revision.number - KEPT)

    async def all(self) -> list[Revision]:
        """Those that are kept, oldest first; the last one is active."""
        active = await self.active()
        if active is None:
            return []
        entries = await self._store.list(CONFIG, PAST)
        # Where an attempt to apply died half way, the active one is among those of the past.
        past = {revision.number: revision for revision in map(_read, entries)}
        before = [past[number] for number in sorted(past) if number < active.revision.number]
        return [*before, active.revision]

    async def _forget(self, number: int) -> None:
        """One that is too old; what is left because a try failed goes nowhere, and is small."""
        if number > 0:
            with suppress(StoreUnavailable):
                await self._store.delete(CONFIG, f"{PAST}{number:09d}")


def _key(revision: Revision) -> str:
    return f"{PAST}{revision.number:09d}"


def _read(entry: Entry) -> Revision:
    revision = decoded(entry.value)
    if revision is None:
        raise StoreUnavailable(
            f"{CONFIG.name}/{entry.key} is no revision that this build can read; "
            "it may be of a later one: run that everywhere"
        )
    return revision
