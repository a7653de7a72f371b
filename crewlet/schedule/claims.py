"""Each fire once in the fleet: whoever creates its row may publish it, and must.

A row is *claimed* until its task is in the inbox and its record is written, then *done*. One that
stays claimed belongs to a node that died in between; whoever finds it finishes it, under the same
ids, so that nothing is there twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct, structs

from crewlet.coordination.store import FIRES, Conflict, Entry, Store
from crewlet.errors import StoreUnavailable
from crewlet.schedule.fires import Fire

_NOT_IN_KEYS: Final = re.compile(r"[^A-Za-z0-9_-]")


class Claim(Struct, frozen=True, kw_only=True):
    """A fire for one seat. `at` is when it was claimed: what is published for it says so, however
    often it is published. `kept`: once it is done, whether there was an inbox."""

    key: str
    label: str
    target: str
    at: datetime
    node: str
    done: bool = False
    kept: bool = True
    revision: int = 0


class Claims:
    """The rows, kept for two days: longer than any look goes back (LONGEST_WINDOW)."""

    def __init__(self, store: Store, node_id: str) -> None:
        self._store = store
        self._node_id = node_id

    async def take(self, fire: Fire, target: str, now: datetime) -> Claim:
        """Our claim, or the one that is there. StoreUnavailable: unknown, and then nothing may be
        published: a row that is there after all is found the next time."""
        claim = Claim(
            key=key_of(fire, target), label=fire.label, target=target, at=now, node=self._node_id
        )
        try:
            revision = await self._store.create(FIRES, claim.key, msgspec.json.encode(claim))
        except Conflict:
            entry = await self._store.get(FIRES, claim.key)
            if entry is None:  # its age took it, between two questions
                raise StoreUnavailable(f"the claim {claim.key} came and went") from None
            return _decoded(entry)
        return structs.replace(claim, revision=revision)

    async def finish(self, claim: Claim, *, kept: bool) -> None:
        """All of it is published. Where another node says so too, nothing is left to say."""
        done = msgspec.json.encode(structs.replace(claim, done=True, kept=kept))
        try:
            await self._store.update(FIRES, claim.key, done, claim.revision)
        except Conflict:
            return

    async def of(self, id: str) -> Sequence[Claim]:
        """All that anybody has claimed of an entry."""
        return [_decoded(row) for row in await self._store.list(FIRES, f"{id}.")]


def key_of(fire: Fire, target: str) -> str:
    """The entry, the label with its offset, and the seat."""
    return f"{fire.entry.id}.{_NOT_IN_KEYS.sub('_', fire.label)}.{target}"


def _decoded(entry: Entry) -> Claim:
    try:
        claim = msgspec.json.decode(entry.value, type=Claim)
    except msgspec.MsgspecError as error:
        raise StoreUnavailable(f"the claim {entry.key} cannot be read: {error}") from None
    return structs.replace(claim, key=entry.key, revision=entry.revision)
