"""The fleet's leases as rows of a bucket: `node.ID`, `seat.HANDLE`, `worker.DUTY`."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
import structlog
from msgspec import Struct, field

from actors.failpoints import reached
from actors.ports import Unavailable
from actors.tenure import NODE, SEAT, WORKER, Heard, Lease, Lost
from crewlet.coordination.store import LEASES, Conflict, Entry, Store, Watch, lease_key
from crewlet.coordination.store import Heard as Told
from crewlet.errors import StoreUnavailable

log = structlog.get_logger(__name__)

_HELD: Final = (SEAT, WORKER)


class _Row(Struct, frozen=True, kw_only=True):
    """A lease as it is stored: what its key and its revision say is not in it."""

    owner: str
    node: str
    epoch: int
    session: int
    released: bool = False
    preferred: str = ""
    about: Mapping[str, str] = field(default_factory=dict)


_ROW: Final = msgspec.json.Decoder(_Row)


class BucketLeases:
    """`actors.tenure.LeaseStore` over the coordination store.

    Its safe direction is that nothing changes hands: a write that is not known to be applied is
    no lease, and a row that cannot be read belongs to somebody (it is told to nobody, and a
    write that takes it for missing is Lost).
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, resource: str) -> Lease | None:
        """The row as the leader has it; None where there is none, or none that can be read."""
        with _in_words_of_the_port():
            entry = await self._store.get(LEASES, lease_key(resource))
        return None if entry is None else _lease(entry)

    async def list(self) -> Sequence[Lease]:
        """Every row that can be read; seats and duties as of before the nodes."""
        found: list[Lease] = []
        with _in_words_of_the_port():
            for kind in (*_HELD, NODE):
                entries = await self._store.list(LEASES, _prefix(kind))
                found += [lease for entry in entries if (lease := _lease(entry)) is not None]
        return found

    async def write(self, lease: Lease) -> Lease:
        """The row with its new revision, if `lease.revision` was still its last; else Lost."""
        key, value = lease_key(lease.resource), _value(lease)
        reached("before_lease_cas")
        with _in_words_of_the_port():
            if lease.revision:
                revision = await self._store.update(LEASES, key, value, lease.revision)
            else:
                revision = await self._store.create(LEASES, key, value)
        reached("after_lease_cas")
        return msgspec.structs.replace(lease, revision=revision)

    def watch(self, heard: Heard) -> Awaitable[Watch]:
        """Hear every row that can be read, and each one as it is written. Rows are never
        deleted by us: one that an operator deletes is heard of without an owner."""

        def told(entry: Entry) -> None:
            if entry.gone:
                log.error("lease_row_deleted", key=entry.key)
                heard(_gone(entry))
            elif (lease := _lease(entry)) is not None:
                heard(lease)

        return self._watch(told)

    async def _watch(self, told: Told) -> Watch:
        with _in_words_of_the_port():
            return await self._store.watch(LEASES, "", told)


def _gone(entry: Entry) -> Lease:
    kind, _, name = entry.key.partition(".")
    resource = f"{kind}:{name}"
    node = name if resource.startswith(NODE) else ""
    return Lease(
        resource=resource, owner="", node=node, epoch=0, session=0, revision=entry.revision
    )


def _prefix(kind: str) -> str:
    return f"{kind.removesuffix(':')}."


def _value(lease: Lease) -> bytes:
    """All but what the store knows by itself: the key and the revision."""
    row = msgspec.to_builtins(lease)
    del row["resource"], row["revision"]
    return msgspec.json.encode(row)


def _lease(entry: Entry) -> Lease | None:
    """None where a peer wrote what this node cannot read: logged, and passed over. What a newer
    node adds to a row is no hindrance."""
    kind, _, name = entry.key.partition(".")
    resource = f"{kind}:{name}"
    try:
        lease_key(resource)
        row = _ROW.decode(entry.value)
        stored = msgspec.structs.asdict(row)
        return Lease(resource=resource, revision=entry.revision, **stored)
    except (ValueError, RecursionError) as error:  # msgspec's errors are of the first kind
        log.error("lease_row_unreadable", key=entry.key, error=str(error))
        return None


@contextmanager
def _in_words_of_the_port() -> Iterator[None]:
    try:
        yield
    except Conflict as error:
        raise Lost(str(error)) from error
    except StoreUnavailable as error:
        raise Unavailable(str(error)) from error
