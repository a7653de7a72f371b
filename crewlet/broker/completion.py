"""A completion over JetStream: rows written where none is, while the fence holds.

One message can show one condition. A batch shows many, in one go: each row that it is the first
on its key, and an empty message that the fence's row is unchanged. A server that keeps the stream
alone and on files stages each batch in a file store of its own: 2 ms at rest and 20 when busy,
whatever is in it, against 0.2 for a message (docs/benchmarks.md). So a single row, which most
turns have, goes as one message that shows the fence, and is kept from overwriting another in two
steps:

* rows of earlier tenures are older than the fence, and those of ours that we know of are older
  than now: the leader is asked for the row first;
* what that read cannot have seen - from a leader that is none any more (seconds), or of our
  own whose answer is still out - bears the same message id, which only the key and what was on
  it decide: the server remembers it for two minutes, and stores no second one.
"""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from actors.ports import NotLive, Unavailable
from actors.tenure import Fence, Fenced
from crewlet.broker import names
from crewlet.broker.api import MEETS_ANOTHER, WRONG_SEQUENCE, Api, ApiError, Stored
from crewlet.broker.pull import ID_HEADER
from crewlet.coordination.store import LEASES, Bucket, Conflict, lease_key
from crewlet.errors import StoreUnavailable

EXPECT: Final = "Nats-Expected-Last-Subject-Sequence"
EXPECT_OF: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
TTL: Final = "Nats-TTL"
WRITE: Final = "Crewlet-Write"
"""Names the call that wrote a row: how a retry knows its own."""

BATCH: Final = "Nats-Batch-Id"
AT: Final = "Nats-Batch-Sequence"
COMMIT: Final = "Nats-Batch-Commit"

KNOWN_ID: Final = 10201
"""A row of the batch bears an id that the server remembers."""

IN_PROCESS: Final = 10158
INCOMPLETE: Final = 10176
TELLING: Final = frozenset(
    {WRONG_SEQUENCE, MEETS_ANOTHER, KNOWN_ID, IN_PROCESS, INCOMPLETE, 10210, 10211}
)
"""Refusals after which the leader is asked what is there: a condition did not hold, another
copy is being stored just now, a part of a batch was lost, or too many are open."""

AGAIN_S: Final = (0.01, 0.05)

Last = Callable[[Bucket, str, float], Awaitable[Stored | None]]


def age_headers(bucket: Bucket) -> dict[str, str]:
    """In a shared log each value brings its own age along, in whole seconds."""
    if not bucket.log or bucket.age_s is None:
        return {}
    return {TTL: str(max(1, math.ceil(bucket.age_s)))}


class Completion:
    """One call of `record`: see crewlet.coordination.store.Store."""

    def __init__(
        self, api: Api, last: Last, bucket: Bucket, rows: Mapping[str, bytes], fence: Fence
    ) -> None:
        self._api = api
        self._last = last
        self._bucket = bucket
        self._rows = rows
        self._fence = fence
        self._lease = lease_key(fence.resource)
        self._id = secrets.token_hex(16)
        self._free = dict.fromkeys(rows, 0)
        """What is on each key: nothing, or the marker of a deletion with this sequence."""

    async def write(self, deadline: float, try_s: float) -> None:
        """Try until it is decided, or until the deadline (of time.monotonic): StoreUnavailable."""
        if self._fence.revision < 1:  # to the server: while there is no row
            raise Fenced(f"{self._fence.resource} was never taken: its fence has no revision")
        look = self._glance if len(self._rows) == 1 else None
        while True:
            wait_s = max(0.01, min(try_s, deadline - time.monotonic()))
            try:
                if look is None or not await look(wait_s):
                    await self._send(wait_s)
                return
            except ApiError as error:
                if error.code not in TELLING:
                    raise StoreUnavailable(f"the completion was refused: {error}") from error
                reason: Exception = error
            except NotLive as error:
                raise StoreUnavailable("this client of the store was stopped") from error
            except (StoreUnavailable, Unavailable) as error:
                reason = error
            look = self._decided
            pause_s = random.uniform(*AGAIN_S)  # noqa: S311
            if time.monotonic() + pause_s >= deadline:
                raise StoreUnavailable(
                    "the coordination store did not say in time whether it recorded "
                    f"{', '.join(self._rows)} in {self._bucket.name}: {reason}"
                ) from reason
            await asyncio.sleep(pause_s)

    async def _glance(self, wait_s: float) -> bool:
        """Before the first try, while nothing of ours can be on its way: is the row there?"""
        (key,) = self._rows
        row = await self._last(self._bucket, key, wait_s)
        if row is not None and not names.is_marker(row.headers):
            return await self._decided(wait_s)
        self._free[key] = 0 if row is None else row.sequence
        return False

    async def _decided(self, wait_s: float) -> bool:
        """True: it is written. False: nothing stands in its way. Or Fenced, or Conflict.

        The lease is read before the rows: once it has changed, no copy of ours that is still on
        its way can be stored, so that rows which are missing then will be for ever.
        """
        lease = await self._last(LEASES, self._lease, wait_s)
        rows = await asyncio.gather(*(self._last(self._bucket, key, wait_s) for key in self._rows))
        there = {row.subject: row for row in rows if row is not None}
        if any(row.headers.get(WRITE) == self._id for row in there.values()):
            return True
        if lease is None or lease.sequence != self._fence.revision:
            raise Fenced(
                f"{self._fence.resource} was taken over since revision {self._fence.revision}"
            )
        live = []
        for key in self._rows:
            row = there.get(names.keys_of(self._bucket, key))
            self._free[key] = 0 if row is None else row.sequence
            if row is not None and not names.is_marker(row.headers):
                live.append(key)
        if live:
            raise Conflict(f"{self._bucket.name}: rows are there already", live)
        return False

    async def _send(self, wait_s: float) -> None:
        if len(self._rows) > 1:
            await self._batch(wait_s)
            return
        ((key, value),) = self._rows.items()
        answer = await self._ask(self._row(key, value, self._showing()), wait_s)
        if answer.get("duplicate"):
            raise ApiError(KNOWN_ID, "a row of this id was there already")

    async def _batch(self, wait_s: float) -> None:
        log = names.log_of(self._bucket)
        fence = (names.fence_of(log, self._lease), b"", self._showing() | age_headers(self._bucket))
        rows = [
            self._row(key, value, {EXPECT: str(self._free[key])})
            for key, value in self._rows.items()
        ]
        messages, batch = [fence, *rows], secrets.token_hex(8)
        for at, (_, _, headers) in enumerate(messages, 1):
            headers |= {BATCH: batch, AT: str(at)}
        messages[-1][2][COMMIT] = "1"
        wire = self._api.wire
        sent = [wire.send(subject, body, headers=one) for subject, body, one in messages[:-1]]
        try:
            await self._ask(messages[-1], wait_s)
        except Unavailable:
            for data in sent:  # what still waits for a connection would only open a batch
                wire.forget(data)
            raise

    async def _ask(self, message: tuple[str, bytes, dict[str, str]], wait_s: float) -> Any:
        subject, body, headers = message
        return await self._api.ask(subject, body, headers=headers, wait_s=wait_s)

    def _showing(self) -> dict[str, str]:
        return {
            EXPECT: str(self._fence.revision),
            EXPECT_OF: names.keys_of(LEASES, self._lease),
        }

    def _row(self, key: str, value: bytes, shown: dict[str, str]) -> tuple[str, bytes, Any]:
        subject = names.keys_of(self._bucket, key)
        once = {ID_HEADER: f"{subject}@{self._free[key]}", WRITE: self._id}
        return subject, value, shown | once | age_headers(self._bucket)
