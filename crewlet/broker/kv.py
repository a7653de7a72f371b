"""The coordination store over JetStream: a bucket is a stream that keeps each key's last value.

Reads go to the leader of the bucket's stream. A write is one publish with the sequence that it
expects; while its effect is unknown it is repeated under one id, so that the answer is about
this very write and not about its own first copy.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from actors.ports import NotLive, Unavailable
from actors.tenure import Fence
from crewlet.broker import names
from crewlet.broker.api import MEETS_ANOTHER, STREAM_MISSING, WRONG_SEQUENCE, Api, ApiError, Stored
from crewlet.broker.completion import EXPECT, Completion, age_headers
from crewlet.broker.pull import ID_HEADER
from crewlet.broker.watch import JetStreamWatch
from crewlet.coordination.store import (
    Bucket,
    Conflict,
    Entry,
    Heard,
    Watch,
    checked_key,
    checked_prefix,
    checked_record,
)
from crewlet.errors import StoreUnavailable

T = TypeVar("T")

TRY_S: Final = 2.0
AGAIN_S: Final = 0.01
WAIT_S: Final = 5.0
"""A verb answers within this: a lease is renewed every 5 s and lives for 20."""

PARALLEL: Final = 64


class JetStreamStore:
    """See the port, crewlet.coordination.Store."""

    def __init__(self, api: Api, make: Callable[[Bucket], Awaitable[None]]) -> None:
        self._api = api
        self._make = make
        self._made: set[str] = set()
        self._limit = asyncio.Semaphore(PARALLEL)

    async def get(self, bucket: Bucket, key: str) -> Entry | None:
        return _live(bucket, await self._last(bucket, checked_key(key)))

    async def create(self, bucket: Bucket, key: str, value: bytes) -> int:
        checked_key(key)
        try:
            return await self._write(bucket, key, value, expect=0)
        except Conflict:
            last = await self._last(bucket, key)
            if last is None or not names.is_marker(last.headers):
                raise
            # What was deleted left a marker behind: a key that is free, with a sequence.
            return await self._write(bucket, key, value, expect=last.sequence)

    async def update(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        return await self._write(bucket, checked_key(key), value, expect=revision)

    async def put(self, bucket: Bucket, key: str, value: bytes) -> int:
        return await self._write(bucket, checked_key(key), value)

    async def delete(self, bucket: Bucket, key: str) -> None:
        checked_key(key)
        if await self.get(bucket, key) is not None:
            await self._write(bucket, key, b"", marker=True)

    async def list(self, bucket: Bucket, prefix: str = "") -> Sequence[Entry]:
        """The leader names the keys, and is asked for each: no consumer is left behind, and
        no replica that lags has a say."""
        keys = sorted(key for key in await self._keys(bucket, prefix) if key.startswith(prefix))
        entries = await asyncio.gather(*(self._limited(bucket, key) for key in keys))
        return [entry for entry in entries if entry is not None]

    async def watch(self, bucket: Bucket, prefix: str, heard: Heard) -> Watch:
        watch = JetStreamWatch(self._api, self._log, bucket, checked_prefix(prefix), heard)
        await watch.begin()
        return watch

    async def record(self, bucket: Bucket, rows: Mapping[str, bytes], fence: Fence) -> None:
        checked_record(bucket, rows)
        completion = Completion(self._api, self._last, bucket, rows, fence)
        await self._ready(bucket)
        await completion.write(time.monotonic() + WAIT_S, TRY_S)

    # -- inside ----------------------------------------------------------------------------

    async def _ready(self, bucket: Bucket) -> str:
        """The stream of a bucket, made on its first use where nobody has."""
        if bucket.name not in self._made:
            await self._reached(self._make(bucket))
            self._made.add(bucket.name)
        return names.bucket(names.log_of(bucket))

    async def _log(self, bucket: Bucket) -> tuple[str, str]:
        """The stream of a bucket and when it was made; one that is gone is made anew."""
        stream = await self._ready(bucket)
        try:
            info = await self._api.call(f"STREAM.INFO.{stream}")
        except ApiError as error:
            if error.code == STREAM_MISSING:
                self._made.discard(bucket.name)
            raise
        return stream, info["created"]

    async def _limited(self, bucket: Bucket, key: str) -> Entry | None:
        async with self._limit:
            return _live(bucket, await self._last(bucket, key))

    async def _keys(self, bucket: Bucket, prefix: str) -> set[str]:
        head = len(names.keys_of(bucket, ""))
        verb = f"STREAM.INFO.{await self._ready(bucket)}"
        keys: set[str] = set()
        while True:
            narrowed = names.keys_beginning(bucket, checked_prefix(prefix))
            question = {"subjects_filter": narrowed, "offset": len(keys)}
            answer = await self._reached(self._api.call(verb, question, WAIT_S))
            page = answer["state"].get("subjects") or {}
            keys |= {subject[head:] for subject in page}
            if not page or len(keys) >= answer.get("total", 0):
                return keys

    async def _last(self, bucket: Bucket, key: str, wait_s: float = WAIT_S) -> Stored | None:
        question = {"last_by_subj": names.keys_of(bucket, key)}
        stream = await self._ready(bucket)
        return await self._reached(self._api.message(stream, question, wait_s))

    async def _write(
        self,
        bucket: Bucket,
        key: str,
        value: bytes,
        *,
        expect: int | None = None,
        marker: bool = False,
    ) -> int:
        """The revision; Conflict where `expect` is not the last. Repeated until decided."""
        headers = {ID_HEADER: secrets.token_hex(16), **age_headers(bucket)}
        if expect is not None:
            headers[EXPECT] = str(expect)
        if marker:
            headers[names.OPERATION] = "DEL"
        await self._ready(bucket)
        subject = names.keys_of(bucket, key)
        deadline, repeated = time.monotonic() + WAIT_S, False
        while True:
            left_s = deadline - time.monotonic()
            try:
                answer = await self._api.ask(
                    subject, value, headers=headers, wait_s=max(0.01, min(TRY_S, left_s))
                )
                return int(answer["seq"])
            except ApiError as error:
                if error.code == MEETS_ANOTHER and left_s > AGAIN_S:
                    await asyncio.sleep(AGAIN_S)
                    continue
                if error.code != WRONG_SEQUENCE:
                    raise StoreUnavailable(f"the coordination store refused: {error}") from error
                return await self._ours(bucket, key, headers[ID_HEADER], repeated)
            except NotLive as error:
                raise StoreUnavailable("this client of the store was stopped") from error
            except Unavailable as error:
                if left_s <= TRY_S:
                    raise StoreUnavailable(
                        f"the coordination store did not say within {WAIT_S:.0f} s "
                        f"whether it wrote {bucket.name}/{key}"
                    ) from error
                repeated = True
                await asyncio.sleep(0.01)

    async def _ours(self, bucket: Bucket, key: str, write_id: str, repeated: bool) -> int:
        """The write came too late, unless it ran into its own first copy."""
        if not repeated:
            raise Conflict(f"{bucket.name}/{key} was written by somebody else")
        last = await self._last(bucket, key)
        if last is not None and last.headers.get(ID_HEADER) == write_id:
            return last.sequence
        # Ours may have been first and overwritten since: neither yes nor no.
        raise StoreUnavailable(f"whether {bucket.name}/{key} was written cannot be told any more")

    @staticmethod
    async def _reached(answer: Awaitable[T]) -> T:
        try:
            return await answer
        except (ApiError, NotLive, Unavailable) as error:
            raise StoreUnavailable(f"the coordination store did not answer: {error}") from error


def _live(bucket: Bucket, stored: Stored | None) -> Entry | None:
    if stored is None or names.is_marker(stored.headers):
        return None
    key = stored.subject[len(names.keys_of(bucket, "")) :]
    return Entry(key=key, value=stored.body, revision=stored.sequence)
