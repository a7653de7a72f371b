"""The port of the coordination store, and the buckets that the engine keeps in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol

from msgspec import Struct

from actors.tenure import NODE, SEAT, WORKER, Fence
from crewlet.errors import CrewletError

_KEY: Final = re.compile(r"[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_=-]+")
_KINDS: Final = frozenset({NODE[:-1], SEAT[:-1], WORKER[:-1]})


class Conflict(CrewletError):
    """A conditional write that somebody else's write came before. Nothing was changed.

    `keys`: of several rows, those that were there already."""

    code = "conflict"
    blame = "peer"

    def __init__(self, message: str, keys: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


class Entry(Struct, frozen=True):
    """A value and the revision to name in the next conditional write. Only a watch hears of one
    that is `gone`: it was deleted, by a write of this revision."""

    key: str
    value: bytes
    revision: int
    gone: bool = False


class Bucket(Struct, frozen=True):
    """A named set of keys. `age_s` is how long a value outlives its last write; None: for ever.

    Buckets of one `log` are kept together: their revisions are one order, and what is recorded
    in one can be fenced by a row of another. By default a bucket is a log of its own.
    """

    name: str
    age_s: float | None = None
    log: str = ""


OWNERSHIP: Final = "ownership"

LEASES: Final = Bucket("leases", log=OWNERSHIP)
"""Sessions of nodes, and the seats and duties that are held under them (docs/adr/0009)."""

LEDGER: Final = Bucket("ledger", age_s=7 * 24 * 3600.0, log=OWNERSHIP)
"""Triggers that a finished turn worked: longer than 25 deliveries of 30 minutes each. Kept with
the leases: the server refuses the completion of a turn whose seat is somebody else's."""

CLAIMS: Final = Bucket("claims", age_s=300.0)
"""Deliveries from outside that were routed: what a vendor's retry runs into."""

FOLLOWERS: Final = Bucket("followers", age_s=(30 * 24 + 1) * 3600.0)
"""Who is in a conversation, for 30 days after its last activity, which is written down once an
hour at most."""

PAUSES: Final = Bucket("pauses")
"""Which seats a person has paused: it outlives every node."""

STATUS: Final = Bucket("status", age_s=60.0)
"""What each node says of itself, while it goes on saying it."""

RUNS: Final = Bucket("runs")
"""Work that outlives a turn, until whoever started it takes it away."""

CHANNELS: Final = Bucket("channels")
"""What is known of the channels that conversations are held in."""

CONFIG: Final = Bucket("config")
"""Settings that the whole fleet follows."""

SEATS: Final = Bucket("seats")
"""Every seat that has had a mailbox, and since when the company has been without it."""

SCHEDULES: Final = Bucket("schedules")
"""Since when each schedule has been what it is, and up to when somebody has looked at them."""

FIRES: Final = Bucket("fires", age_s=2 * 24 * 3600.0)
"""Fires of schedules that were claimed: for far longer than any catch-up looks back (2 h)."""

RATES: Final = Bucket("rates", age_s=60.0)
"""How many notifications a seat got in a window of the rate limit (of one second), and what was
said of each: for longer than a delivery that failed waits to come again (30 s)."""

BUCKETS: Final = (
    LEASES,
    LEDGER,
    CLAIMS,
    FOLLOWERS,
    PAUSES,
    STATUS,
    RUNS,
    CHANNELS,
    CONFIG,
    SEATS,
    SCHEDULES,
    FIRES,
    RATES,
)

Heard = Callable[[Entry], None]
"""Called on the loop, one entry after another; it may not block."""


class Watch(Protocol):
    async def close(self) -> None:
        """Nothing is heard after this returns, and nothing is left at the broker. Idempotent."""


class Store(Protocol):
    """Keys are dot-separated tokens of letters, digits, `-`, `_` and `=` (else ValueError).

    Each verb answers yes (its result), no (None or Conflict), or unknown (StoreUnavailable);
    each caller states which way it errs on unknown.
    """

    async def get(self, bucket: Bucket, key: str) -> Entry | None:
        """The live value; None where there is none."""

    async def create(self, bucket: Bucket, key: str, value: bytes) -> int:
        """Write where nothing is; Conflict where something is. Returns the revision."""

    async def update(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        """Write where `revision` is still the last; else Conflict. Returns the new revision."""

    async def put(self, bucket: Bucket, key: str, value: bytes) -> int:
        """Write whatever is there. Returns the revision."""

    async def delete(self, bucket: Bucket, key: str) -> None:
        """Remove the value; nothing where there is none."""

    async def list(self, bucket: Bucket, prefix: str = "") -> Sequence[Entry]:
        """Every live entry whose key begins with `prefix`, by key; complete as of its start."""

    async def watch(self, bucket: Bucket, prefix: str, heard: Heard) -> Watch:
        """Hear every live entry whose key begins with `prefix`, in the order of revisions, then
        each write as it is stored, a deletion among them. Returns once what was there has been
        heard; StoreUnavailable where that did not come about, and then nothing is heard.

        What was there is told in one go, without anything running in between; from then on what
        was heard is a prefix of what was written: whoever hears of a write has heard of those
        before it. (In a bucket with a log of its own a value may be overwritten before it is
        told, and then is not.) After a gap everything is heard again: the same revision may
        come twice, an older one of a key never after a newer one. What its age has taken is not
        told.
        """

    async def record(self, bucket: Bucket, rows: Mapping[str, bytes], fence: Fence) -> None:
        """Write each row where nothing is, all of them or none, while `fence.revision` is still
        the last of the fence's row in LEASES.

        Fenced: it is not, nothing was written, and nothing ever will be under this fence.
        Conflict: rows of those `keys` are there, nothing was written. StoreUnavailable: unknown;
        the caller may try again (a row that is there then may be its own) and acknowledges
        nothing meanwhile. ValueError for a bucket that is not kept with LEASES.
        """


@lru_cache(maxsize=8192)
def lease_key(resource: str) -> str:
    """The key in LEASES of `seat:HANDLE`, `node:ID` or `worker:DUTY`; ValueError for what can
    be none: it would be another's, or nobody's."""
    kind, colon, name = resource.partition(":")
    if not colon or kind not in _KINDS or _TOKEN.fullmatch(name) is None:
        raise ValueError(
            f"{resource!r} cannot be leased: it has to be one of {', '.join(sorted(_KINDS))}, a "
            "colon and a name of letters, digits, '-', '_' and '='"
        )
    return checked_key(f"{kind}.{name}")


@lru_cache(maxsize=8192)
def checked_key(key: str) -> str:
    """The key itself; ValueError where it is none: `a..b` would time out without a word."""
    if _KEY.fullmatch(key) is None or len(key) > 200:
        raise ValueError(f"{key!r} is no key of the coordination store")
    return key


def checked_prefix(prefix: str) -> str:
    """The same for the beginning of keys."""
    if prefix:
        checked_key(prefix.removesuffix("."))
    return prefix


def checked_record(bucket: Bucket, rows: Mapping[str, bytes]) -> None:
    """ValueError for rows that no fence could guard, or that are none."""
    if bucket.log != LEASES.log:
        raise ValueError(f"{bucket.name} is not kept with {LEASES.name}: nothing fences it")
    if not rows:
        raise ValueError("no rows: a record of nothing would prove nothing")
    for key in rows:
        checked_key(key)
