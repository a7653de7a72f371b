"""The coordination store of the twin: revisions count per bucket, age is the loop's time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from crewlet.coordination.store import Bucket, Conflict, Entry, checked_key
from crewlet.errors import StoreUnavailable


@dataclass(slots=True)
class Shelf:
    """The entries of one bucket, each with the time of its last write."""

    age_s: float | None
    revision: int = 0
    _entries: dict[str, tuple[Entry, float]] = field(default_factory=dict)

    def live(self, key: str) -> Entry | None:
        """The entry, unless its age has taken it."""
        found = self._entries.get(key)
        if found is None:
            return None
        entry, written = found
        if self.age_s is not None and _now() - written >= self.age_s:
            del self._entries[key]
            return None
        return entry

    def write(self, key: str, value: bytes) -> int:
        self.revision += 1
        self._entries[key] = (Entry(key, bytes(value), self.revision), _now())
        return self.revision

    def remove(self, key: str) -> None:
        """A removal is a write: it takes a revision, as a delete marker does."""
        if self.live(key) is not None:
            self.revision += 1
            del self._entries[key]

    def begins_with(self, prefix: str) -> list[Entry]:
        keys = sorted(key for key in self._entries if key.startswith(prefix))
        return [entry for key in keys if (entry := self.live(key)) is not None]


class Shelves:
    """The buckets that all clients share. `down` makes every verb StoreUnavailable."""

    def __init__(self) -> None:
        self.down = False
        self._shelves: dict[str, Shelf] = {}

    def of(self, bucket: Bucket) -> Shelf:
        if bucket.name not in self._shelves:
            self._shelves[bucket.name] = Shelf(bucket.age_s)
        return self._shelves[bucket.name]


class MemoryStore:
    """One client's face of the buckets (`crewlet.coordination.store.Store`)."""

    def __init__(self, shelves: Shelves, connected: Callable[[], bool]) -> None:
        self._shelves = shelves
        self._connected = connected

    async def get(self, bucket: Bucket, key: str) -> Entry | None:
        """The live value; None where there is none."""
        return (await self._shelf(bucket, key)).live(key)

    async def create(self, bucket: Bucket, key: str, value: bytes) -> int:
        """Write where nothing is; Conflict where something is."""
        shelf = await self._shelf(bucket, key)
        found = shelf.live(key)
        if found is not None:
            raise Conflict(f"{bucket.name}/{key} is there already, at revision {found.revision}")
        return shelf.write(key, value)

    async def update(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        """Write where `revision` is still the last; else Conflict."""
        shelf = await self._shelf(bucket, key)
        found = shelf.live(key)
        if found is None or found.revision != revision:
            last = "gone" if found is None else f"at revision {found.revision}"
            raise Conflict(f"{bucket.name}/{key} is {last}, not at revision {revision}")
        return shelf.write(key, value)

    async def put(self, bucket: Bucket, key: str, value: bytes) -> int:
        """Write whatever is there."""
        return (await self._shelf(bucket, key)).write(key, value)

    async def delete(self, bucket: Bucket, key: str) -> None:
        """Remove the value; nothing where there is none."""
        (await self._shelf(bucket, key)).remove(key)

    async def list(self, bucket: Bucket, prefix: str = "") -> Sequence[Entry]:
        """Every live entry whose key begins with `prefix`, by key."""
        return (await self._shelf(bucket)).begins_with(prefix)

    async def _shelf(self, bucket: Bucket, key: str | None = None) -> Shelf:
        """The bucket, once it could be reached: each verb gives way to others once."""
        if key is not None:
            checked_key(key)
        self._check()
        await asyncio.sleep(0)
        self._check()
        return self._shelves.of(bucket)

    def _check(self) -> None:
        if self._shelves.down or not self._connected():
            raise StoreUnavailable("the coordination store does not answer; try again")


def _now() -> float:
    return asyncio.get_running_loop().time()
