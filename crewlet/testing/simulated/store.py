"""The coordination store as one process of a simulation has it: the port, over its wire."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from actors.simulation.history import History
from actors.simulation.host import Host
from actors.tenure import Fence, Fenced
from crewlet.broker.memory_store import MemoryStore
from crewlet.broker.memory_watch import MemoryWatch
from crewlet.coordination.store import LEASES, LEDGER, Bucket, Conflict, Entry, Heard, Watch
from crewlet.errors import StoreUnavailable

T = TypeVar("T")

TRIES_S: Final = (2.0, 3.0)
"""A write whose answer is lost is said again under its id, as the real client does."""

Peek = Callable[[Bucket, str], Entry | None]
Present = Callable[[Bucket], Sequence[Entry]]


class Row(Struct):
    """What the history wants of a lease as it is stored."""

    owner: str
    epoch: int
    session: int
    released: bool = False
    about: Mapping[str, str] = field(default_factory=dict)


class _About(Struct):
    """What the history wants of a row of the ledger."""

    event_id: str


class StoreOffice:
    """At the broker's end: the twin's own store, what was decided under which id, and the
    watches of this process. `peek` looks at the store without any fault; `old` is what an old
    leader has, while there is one."""

    def __init__(
        self, host: Host, real: MemoryStore, peek: Peek, present: Present, history: History
    ) -> None:
        self.host = host
        self.name = host.name
        self.inc = host.inc
        self.process = host.id
        self.real = real
        self.peek = peek
        self.present = present
        self.history = history
        self.old: Callable[[], Mapping[str, dict[str, Entry]] | None] = lambda: None
        self.watches: list[tuple[MemoryWatch, Callable[[], Sequence[Entry]]]] = []
        self._decided: dict[int, Any] = {}

    async def once(self, number: int, serve: Callable[[], Awaitable[T]]) -> T:
        """Decide a write, or say what was decided."""
        if number not in self._decided:
            try:
                self._decided[number] = await serve()
            except (Conflict, Fenced) as refused:
                self._decided[number] = refused
        decided = self._decided[number]
        if isinstance(decided, Exception):
            raise decided
        return decided  # type: ignore[no-any-return]

    # -- leases ---------------------------------------------------------------------------

    async def write(
        self, bucket: Bucket, key: str, value: bytes, revision: int, sent: float
    ) -> int:
        before = self.peek(bucket, key)
        try:
            if revision:
                written = await self.real.update(bucket, key, value, revision)
            else:
                written = await self.real.create(bucket, key, value)
        except Conflict:
            if bucket is LEASES and key.startswith("seat."):
                self.add("note", seat=key[5:], code="claim_lost")
            raise
        if bucket is LEASES:
            self._leased(key, value, before, written, sent)
        elif bucket is LEDGER:  # a row that nothing guards
            about = msgspec.json.decode(value, type=_About)
            seat = key.partition(".")[0]
            self.add("complete_ok", seat=seat, msg=about.event_id)
        return written

    def _leased(
        self, key: str, value: bytes, before: Entry | None, revision: int, sent: float
    ) -> None:
        kind, _, name = key.partition(".")
        row = msgspec.json.decode(value, type=Row)
        if kind == "node":
            self._session(name, row, before, sent)
        elif kind == "seat" and row.released:
            self.add("release", seat=name, fence=revision, dc=row.epoch)
        elif kind == "seat":
            self.add("grant", seat=name, fence=revision, dc=row.epoch, pos=row.session)

    def _session(self, name: str, row: Row, before: Entry | None, sent: float) -> None:
        if row.released:
            code = "self" if row.owner == self.process else "peer"
            self.history.add("session_over", node=name, dc=row.epoch, code=code)
            return
        known = None if before is None else msgspec.json.decode(before.value, type=Row)
        seal = row.about.get("seal", "")
        heir = known is not None and known.owner != row.owner and not known.released
        code = "heir" if heir and known and seal and known.about.get("seal") == seal else ""
        self.add("session", dc=row.epoch, sent=sent, code=code)

    # -- completions ----------------------------------------------------------------------

    async def record(self, rows: Mapping[str, bytes], fence: Fence) -> None:
        seat = fence.resource.partition(":")[2]
        msgs = {key: msgspec.json.decode(row, type=_About).event_id for key, row in rows.items()}
        try:
            await self.real.record(LEDGER, rows, fence)
        except Fenced:
            for key in rows:
                self._completed("complete_rejected", seat, msgs.get(key, ""), fence)
            raise
        except Conflict as conflict:
            for key in conflict.keys:
                self._completed("complete_dup", seat, msgs.get(key, ""), fence)
            raise
        for key in rows:
            self._completed("complete_ok", seat, msgs.get(key, ""), fence)

    def _completed(self, kind: str, seat: str, msg: str, fence: Fence) -> None:
        self.add(kind, seat=seat, msg=msg, fence=fence.revision)

    def add(self, kind: str, **fields: object) -> None:
        self.history.add(kind, node=self.name, inc=self.inc, **fields)

    # -- watches --------------------------------------------------------------------------

    def mended(self) -> None:
        """Whoever watches may have missed something: everything is told again."""
        for watch, entries in self.watches:
            if watch.open:
                watch.again(entries())


class LinkedStore:
    """`crewlet.coordination.Store` of one process. `unread` counts reads that nobody answered."""

    def __init__(self, host: Host, office: StoreOffice) -> None:
        self._host = host
        self._wire = host.wire
        self._office = office
        self._numbers = 0
        self.unread = 0

    async def get(self, bucket: Bucket, key: str) -> Entry | None:
        async def serve() -> Entry | None:
            old = self._old(bucket)
            return old.get(key) if old is not None else await self._office.real.get(bucket, key)

        return await self._read(serve)

    async def list(self, bucket: Bucket, prefix: str = "") -> Sequence[Entry]:
        async def serve() -> Sequence[Entry]:
            old = self._old(bucket)
            if old is None:
                return await self._office.real.list(bucket, prefix)
            return [old[key] for key in sorted(old) if key.startswith(prefix)]

        return await self._read(serve)

    def _old(self, bucket: Bucket) -> dict[str, Entry] | None:
        old = self._office.old()
        return None if old is None or not self._wire.line.mute else old.get(bucket.name, {})

    async def _read(self, serve: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await self._wire.ask(serve, _late, read=True)
        except StoreUnavailable:
            self.unread += 1
            raise

    async def create(self, bucket: Bucket, key: str, value: bytes) -> int:
        return await self._cas(bucket, key, value, 0)

    async def update(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        return await self._cas(bucket, key, value, revision)

    async def _cas(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        leases = bucket is LEASES
        if leases:
            await self._edge("before_lease_cas")
        sent = self._wire.world.now
        write = partial(self._office.write, bucket, key, value, revision, sent)
        written = await self._decided(write)
        if leases:
            await self._edge("after_lease_cas")
        return written

    async def put(self, bucket: Bucket, key: str, value: bytes) -> int:
        return await self._decided(partial(self._office.real.put, bucket, key, value))

    async def delete(self, bucket: Bucket, key: str) -> None:
        await self._decided(partial(self._office.real.delete, bucket, key))

    async def record(self, bucket: Bucket, rows: Mapping[str, bytes], fence: Fence) -> None:
        await self._edge("before_complete")
        await self._decided(partial(self._office.record, dict(rows), fence))
        await self._edge("after_complete_before_ack")

    async def _decided(self, serve: Callable[[], Awaitable[T]]) -> T:
        self._numbers += 1
        once = partial(self._office.once, self._numbers, serve)
        try:
            return await self._wire.ask(once, _late, TRIES_S[0])
        except StoreUnavailable:
            return await self._wire.ask(once, _late, TRIES_S[1])

    async def watch(self, bucket: Bucket, prefix: str, heard: Heard) -> Watch:
        """What is told goes its own way, in its order; the answer comes behind the rows."""
        listening = Listening(self._host, heard)

        async def serve() -> None:
            try:
                watch = await self._office.real.watch(bucket, prefix, listening.told)
            except StoreUnavailable:
                return  # nobody answers: the asker's own time runs out
            self._office.watches.append((watch, partial(self._office.present, bucket)))
            listening.begun = True
            self._wire.push(listening.ready)

        self._wire.send(lambda: self._wire.world.create_task(serve()))
        try:
            async with asyncio.timeout(sum(TRIES_S)):
                await listening.there
        except TimeoutError:
            listening.open = False
            raise _late() from None
        return listening

    async def _edge(self, name: str) -> None:
        if self._host.point(name):
            await self._wire.process.create_future()


class Listening:
    """A watch in its process, and the weather on the way there."""

    def __init__(self, host: Host, heard: Heard) -> None:
        self._host = host
        self._wire = host.wire
        self._heard = heard
        self.open = True
        self.begun = False
        self.there: asyncio.Future[None] = host.wire.process.create_future()

    def told(self, entry: Entry) -> None:
        """At the broker's end."""
        weather = self._host.watch
        if not self.open or (self.begun and weather.gap):
            return
        late_s = weather.late_s * self._wire.line.random.random()
        for _ in range(2 if weather.twice else 1):
            self._wire.push(self._hear, entry, late_s=late_s)

    def _hear(self, entry: Entry) -> None:
        if self.open:
            self._heard(entry)

    def ready(self) -> None:
        if not self.there.done():
            self.there.set_result(None)

    async def close(self) -> None:
        self.open = False


def _late() -> StoreUnavailable:
    return StoreUnavailable("the coordination store did not answer in time")
