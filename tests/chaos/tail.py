"""Hearing a stream from its beginning, over every kill of its server: each message once, in order.

The position is kept here, never at the server: whatever breaks, a new consumer starts behind the
last message that was heard.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

HEARTBEAT_S = 1.0
SILENT_S = 3.5
"""Without a message or a heartbeat for so long the consumer is given up."""


class Heard(Struct, frozen=True):
    """A message as the stream keeps it; `at` is the server's own time of storing (UTC)."""

    subject: str
    sequence: int
    at: datetime
    headers: dict[str, str]
    body: bytes


class Tail:
    """`heard` is called with each message of the stream that matches."""

    def __init__(
        self, client: Client, stream: str, subject: str, heard: Callable[[Heard], None]
    ) -> None:
        self._client = client
        self._stream = stream
        self._subject = subject
        self._heard = heard
        self.last = 0
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(NatsError, OSError, TimeoutError):
                await self._follow()
            await asyncio.sleep(0.2)

    async def _follow(self) -> None:
        """Until nothing comes any more, or something was missed."""
        arrived: asyncio.Queue[Msg] = asyncio.Queue()
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox, cb=arrived.put)
        config = ConsumerConfig(
            deliver_subject=inbox,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self.last + 1,
            ack_policy=AckPolicy.NONE,
            filter_subject=self._subject,
            idle_heartbeat=HEARTBEAT_S,
            mem_storage=True,
            num_replicas=1,
        )
        try:
            await self._client.jetstream(timeout=3).add_consumer(self._stream, config)
            position = 0
            while True:
                message = await asyncio.wait_for(arrived.get(), SILENT_S)
                if (message.headers or {}).get("Status"):
                    continue
                position += 1
                if message.metadata.sequence.consumer != position:
                    return
                self._take(message)
        finally:
            with contextlib.suppress(NatsError, OSError):
                await subscription.unsubscribe()

    def _take(self, message: Msg) -> None:
        about = message.metadata
        if about.sequence.stream > self.last:
            self.last = about.sequence.stream
            headers = dict(message.headers or {})
            stored = about.timestamp
            self._heard(Heard(message.subject, self.last, stored, headers, message.data))
