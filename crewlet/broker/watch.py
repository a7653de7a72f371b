"""A watch over JetStream: one ordered consumer, made anew whenever it may have missed something.

The consumer is pushed to a route of the wire, last value of each key first, unacknowledged. Its
deliveries are numbered without a hole, and its heartbeats tell the last number: whatever is
lost is noticed, and then everything is heard again from a new consumer.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from actors.ports import NotLive, Unavailable
from crewlet.broker import names, receipts
from crewlet.broker.api import Api, ApiError
from crewlet.broker.route import Message, Route, status
from crewlet.coordination.store import Bucket, Entry, Heard
from crewlet.errors import StoreUnavailable

log = structlog.get_logger(__name__)

SECOND: Final = 1_000_000_000

HEARTBEAT_S: Final = 2.0
SILENCE_S: Final = 5.0
"""Two heartbeats missed: well inside the 20 s that a session outlives its last renewal."""

HEARTBEAT: Final = "100"

BEGIN_S: Final = 5.0
CLOSE_S: Final = 1.0
AGAIN_S: Final = (0.05, 0.3)

UNHEARD_S: Final = 30
"""The server ends a consumer that nobody hears after this: one whose owner died."""

Log = Callable[[Bucket], Awaitable[tuple[str, str]]]
"""The stream of a bucket, and when it was made: one that is made anew counts from one again."""


class _Pass:
    """One consumer, from its creation until something may have been missed."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.name = f"watch_{secrets.token_hex(8)}"
        self.route: Route | None = None
        self.seen = 0
        self.present: int | None = None
        """So many deliveries are what was there at the beginning; None: not known yet."""
        self.held: list[Entry] | None = []
        """What was there, until all of it is; then it is told in one go."""


class JetStreamWatch:
    """See crewlet.coordination.store.Watch."""

    def __init__(self, api: Api, log_of: Log, bucket: Bucket, prefix: str, heard: Heard) -> None:
        self._wire = api.wire
        self._api = api
        self._log_of = log_of
        self._bucket = bucket
        self._prefix = prefix
        self._heard = heard
        self._head = len(names.keys_of(bucket, ""))
        self._open = True
        self._made = ""
        self._told: dict[str, int] = {}
        self._pass: _Pass | None = None
        self._left: list[_Pass] = []
        self._task: asyncio.Task[None] | None = None
        self._trouble = ""
        self._caught_up = asyncio.Event()
        self._last_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def begin(self) -> None:
        """Returns when what was there has been heard; else StoreUnavailable, and it is closed."""
        try:
            self._wire.check_live()
        except NotLive as error:
            raise StoreUnavailable("this client of the store was stopped") from error
        self._wire.on_up.append(self._again)
        self._again()
        try:
            async with asyncio.timeout(BEGIN_S):
                await self._caught_up.wait()
        except TimeoutError:
            await self.close()
            raise StoreUnavailable(
                f"{self._bucket.name} could not be watched within {BEGIN_S:.0f} s: "
                f"{self._trouble or 'not everything was heard'}"
            ) from None
        except BaseException:
            await self.close()
            raise
        self._look()

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._leave()
        with contextlib.suppress(ValueError):
            self._wire.on_up.remove(self._again)
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._wire.connected:
            with contextlib.suppress(ApiError, NotLive, Unavailable, TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._clear()

    # -- consumers -------------------------------------------------------------------------

    def _again(self) -> None:
        """Something may have been missed: hear everything from a new consumer."""
        if not self._open:
            return
        self._leave()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._establish())

    def _leave(self) -> None:
        if self._pass is not None:
            self._left.append(self._pass)
            self._pass = None
        for one in self._left:
            if one.route is not None:
                self._wire.drop(one.route)

    async def _establish(self) -> None:
        while self._open and self._pass is None and self._live():
            try:
                await self._make()
                await self._clear()
            except (ApiError, NotLive, StoreUnavailable, Unavailable) as error:
                self._trouble = str(error)
                log.warning("store_watch_failed", bucket=self._bucket.name, error=str(error))
                await asyncio.sleep(random.uniform(*AGAIN_S))  # noqa: S311

    async def _make(self) -> None:
        stream, made = await self._log_of(self._bucket)
        if made != self._made:
            self._made = made
            self._all_gone()
        one = self._pass = _Pass(stream)
        inbox = self._wire.new_inbox()
        one.route = self._wire.route(inbox, lambda message: self._deliver(one, message))
        self._last_s = asyncio.get_running_loop().time()
        pattern = names.keys_beginning(self._bucket, self._prefix)
        question = {
            "stream_name": stream,
            "action": "create",
            "config": _consumer(one.name, pattern, inbox),
        }
        try:
            info = await self._api.call(f"CONSUMER.CREATE.{stream}.{one.name}.{pattern}", question)
        except BaseException:
            if self._pass is one:
                self._leave()
            raise
        one.present = info["delivered"]["consumer_seq"] + info["num_pending"]
        self._check_caught_up(one)

    async def _clear(self) -> None:
        """Take out the consumers that are heard no more. What fails is the server's to do."""
        while self._left:
            one = self._left[-1]
            with contextlib.suppress(ApiError):  # it is gone with its server
                await self._api.call(f"CONSUMER.DELETE.{one.stream}.{one.name}", wait_s=CLOSE_S)
            self._left.remove(one)

    def _look(self) -> None:
        """Every heartbeat: was there one?"""
        loop = asyncio.get_running_loop()
        if self._pass is not None and loop.time() - self._last_s > SILENCE_S:
            if not self._live():
                return
            log.warning("store_watch_silent", bucket=self._bucket.name)
            self._again()
        self._timer = loop.call_later(HEARTBEAT_S, self._look)

    def _live(self) -> bool:
        """After this client was stopped nothing comes any more."""
        try:
            self._wire.check_live()
        except NotLive:
            self._open = False
        return self._open

    # -- what is heard ---------------------------------------------------------------------

    def _deliver(self, one: _Pass, message: Message) -> None:
        if self._pass is not one:
            return
        self._last_s = asyncio.get_running_loop().time()
        receipt = receipts.read(message.reply) if receipts.is_receipt(message.reply) else None
        if receipt is None:
            self._heartbeat(one, message)
        elif receipt.turn != one.seen + 1:
            log.warning("store_watch_gap", bucket=self._bucket.name)
            self._again()
        else:
            one.seen = receipt.turn
            self._hear(one, message, receipt.sequence)
            self._check_caught_up(one)

    def _heartbeat(self, one: _Pass, message: Message) -> None:
        """It comes when there is nothing to deliver, and tells how much was."""
        told = message.headers.get("Nats-Last-Consumer", "0")
        if status(message) != HEARTBEAT or told != str(one.seen):
            log.warning("store_watch_gap", bucket=self._bucket.name)
            self._again()
        elif one.present is not None:
            self._tell_all(one)

    def _check_caught_up(self, one: _Pass) -> None:
        if one.present is not None and one.seen >= one.present:
            self._tell_all(one)

    def _tell_all(self, one: _Pass) -> None:
        held, one.held = one.held, None
        for entry in held or ():
            self._tell(entry)
        self._caught_up.set()

    def _all_gone(self) -> None:
        """The log was deleted and made anew: nothing of what was told is there any more."""
        told, self._told = self._told, {}
        for key, revision in told.items():
            self._say(Entry(key, b"", revision, gone=True))

    def _hear(self, one: _Pass, message: Message, revision: int) -> None:
        key = message.subject[self._head :]
        if not key.startswith(self._prefix):
            return
        gone = names.is_marker(message.headers)
        entry = Entry(key, b"" if gone else message.data, revision, gone)
        if one.held is None:
            self._tell(entry)
        else:
            one.held.append(entry)

    def _tell(self, entry: Entry) -> None:
        if not self._open or entry.revision < self._told.get(entry.key, 0):
            return  # closed by its own listener, or a replica that lags tells what is over
        if entry.gone and entry.key not in self._told:
            return  # deleted before anything was heard of it
        self._told[entry.key] = entry.revision
        self._say(entry)

    def _say(self, entry: Entry) -> None:
        try:
            self._heard(entry)
        except Exception:
            log.exception("store_watch_listener_failed", key=entry.key)


def _consumer(name: str, pattern: str, inbox: str) -> dict[str, Any]:
    return {
        "name": name,
        "deliver_subject": inbox,
        "deliver_policy": "last_per_subject",
        "ack_policy": "none",
        "max_deliver": 1,
        "filter_subject": pattern,
        "replay_policy": "instant",
        "idle_heartbeat": int(HEARTBEAT_S * SECOND),
        "inactive_threshold": UNHEARD_S * SECOND,
        "mem_storage": True,
        "num_replicas": 1,
    }
