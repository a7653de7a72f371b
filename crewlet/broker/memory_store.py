"""The coordination store of the twin: revisions count per log, age is the loop's time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from actors.tenure import Fence, Fenced
from crewlet.broker.memory_watch import MemoryWatch
from crewlet.coordination.store import (
    LEASES,
    Bucket,
    Conflict,
    Entry,
    Heard,
    checked_key,
    checked_prefix,
    checked_record,
    lease_key,
)
from crewlet.errors import StoreUnavailable


@dataclass(slots=True)
class Revisions:
    """The last revision of a log, which all of its buckets count on."""

    last: int = 0

    def next(self) -> int:
        self.last += 1
        return self.last


@dataclass(slots=True)
class Shelf:
    """The entries of one bucket, each with the time of its last write."""

    age_s: float | None
    revisions: Revisions = field(default_factory=Revisions)
    watches: list[MemoryWatch] = field(default_factory=list)
    _entries: dict[str, tuple[Entry, float]] = field(default_factory=dict)
    _removed: dict[str, Entry] = field(default_factory=dict)

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
        entry = Entry(key, bytes(value), self.revisions.next())
        self._entries[key] = (entry, _now())
        self._removed.pop(key, None)
        self._tell(entry)
        return entry.revision

    def remove(self, key: str) -> None:
        """A removal is a write: it takes a revision, as a delete marker does."""
        if self.live(key) is not None:
            del self._entries[key]
            self._removed[key] = Entry(key, b"", self.revisions.next(), gone=True)
            self._tell(self._removed[key])

    def begins_with(self, prefix: str) -> list[Entry]:
        keys = sorted(key for key in self._entries if key.startswith(prefix))
        return [entry for key in keys if (entry := self.live(key)) is not None]

    def came_up(self) -> None:
        """Whoever watches may have missed something: everything is told again."""
        self.watches = [watch for watch in self.watches if watch.open]
        for watch in self.watches:
            watch.again([*self.begins_with(""), *self._removed.values()])

    def _tell(self, entry: Entry) -> None:
        for watch in self.watches:
            watch.tell(entry)


class Shelves:
    """The buckets that all clients share. `down` makes every verb StoreUnavailable."""

    def __init__(self) -> None:
        self._down = False
        self._shelves: dict[str, Shelf] = {}
        self._logs: dict[str, Revisions] = {}

    @property
    def down(self) -> bool:
        return self._down

    @down.setter
    def down(self, down: bool) -> None:
        self._down = down
        if not down:
            self.came_up()

    def of(self, bucket: Bucket) -> Shelf:
        if bucket.name not in self._shelves:
            revisions = self._logs.setdefault(bucket.log or bucket.name, Revisions())
            self._shelves[bucket.name] = Shelf(bucket.age_s, revisions)
        return self._shelves[bucket.name]

    def came_up(self) -> None:
        for shelf in self._shelves.values():
            shelf.came_up()


class MemoryStore:
    """One client's face of the buckets (`crewlet.coordination.store.Store`)."""

    def __init__(self, shelves: Shelves, connected: Callable[[], bool]) -> None:
        self._shelves = shelves
        self._connected = connected
        self._watches: list[MemoryWatch] = []

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

    async def watch(self, bucket: Bucket, prefix: str, heard: Heard) -> MemoryWatch:
        """Hear what is there, then each write."""
        watch = MemoryWatch(checked_prefix(prefix), heard, self._reached)
        shelf = await self._shelf(bucket)
        shelf.watches.append(watch)
        self._watches = [*(one for one in self._watches if one.open), watch]
        try:
            await watch.begin(shelf.begins_with(prefix))
        except BaseException:
            watch.end()
            raise
        return watch

    async def record(self, bucket: Bucket, rows: Mapping[str, bytes], fence: Fence) -> None:
        """Write all rows where none is, while the fence holds; Fenced comes before Conflict."""
        checked_record(bucket, rows)
        key = lease_key(fence.resource)
        shelf = await self._shelf(bucket)
        lease = self._shelves.of(LEASES).live(key)
        if lease is None or lease.revision != fence.revision:
            raise Fenced(f"{fence.resource} was taken over since revision {fence.revision}")
        there = [key for key in rows if shelf.live(key) is not None]
        if there:
            raise Conflict(f"{bucket.name}: rows are there already", there)
        for key, value in rows.items():
            shelf.write(key, value)

    def end(self) -> None:
        """The client is gone: nothing is heard any more."""
        for watch in self._watches:
            watch.end()
        self._watches.clear()

    async def _shelf(self, bucket: Bucket, key: str | None = None) -> Shelf:
        """The bucket, once it could be reached: each verb gives way to others once."""
        if key is not None:
            checked_key(key)
        self._check()
        await asyncio.sleep(0)
        self._check()
        return self._shelves.of(bucket)

    def _reached(self) -> bool:
        return self._connected() and not self._shelves.down

    def _check(self) -> None:
        if not self._reached():
            raise StoreUnavailable("the coordination store does not answer; try again")


def _now() -> float:
    return asyncio.get_running_loop().time()
