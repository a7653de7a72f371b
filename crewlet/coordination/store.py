"""The port of the coordination store, and the buckets that the engine keeps in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from crewlet.errors import CrewletError

_KEY: Final = re.compile(r"[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*")


class Conflict(CrewletError):
    """A conditional write that somebody else's write came before. Nothing was changed."""

    code = "conflict"
    blame = "peer"


class Entry(Struct, frozen=True):
    """A value and the revision to name in the next conditional write."""

    key: str
    value: bytes
    revision: int


class Bucket(Struct, frozen=True):
    """A named set of keys. `age_s` is how long a value outlives its last write; None: for ever."""

    name: str
    age_s: float | None = None


LEDGER: Final = Bucket("ledger", age_s=7 * 24 * 3600.0)
"""Triggers that a finished turn worked: longer than 25 deliveries of 30 minutes each."""

CLAIMS: Final = Bucket("claims", age_s=300.0)
"""Deliveries from outside that were routed: what a vendor's retry runs into."""

FOLLOWERS: Final = Bucket("followers", age_s=30 * 24 * 3600.0)
"""Who is in a conversation, for 30 days after its last activity."""

PRESENCE: Final = Bucket("presence")
"""Which process serves the company; carries its own expiry."""

BUCKETS: Final = (LEDGER, CLAIMS, FOLLOWERS, PRESENCE)


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


def checked_key(key: str) -> str:
    """The key itself; ValueError where it is none: `a..b` would time out without a word."""
    if _KEY.fullmatch(key) is None or len(key) > 200:
        raise ValueError(f"{key!r} is no key of the coordination store")
    return key
