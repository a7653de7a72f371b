"""Publish events durably, tell the listeners, follow what is broadcast."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

import structlog
from msgspec import Struct

from actors.ports import (
    PUBLISH_S,
    BrokerError,
    Clock,
    NotLive,
    Receipt,
    TooLarge,
    Unavailable,
)
from crewlet import topics
from crewlet.broker.port import CompanyBroker, Subscription
from crewlet.errors import CorruptEvent, CrewletError, PublishUnknown
from crewlet.events import Event, decode, encode
from crewlet.events.envelope import MAX_EVENT_BYTES

Listener: TypeAlias = Callable[[str, Event], None]

RETRY_S: Final = 0.2
LONGEST_RETRY_S: Final = 2.0

UNKNOWN_AFTER_S: Final = 60.0
"""How long a publish is retried under its id: longer than any broker election measured (12 s),
shorter than the broker's window for telling a retry from a second message (2 minutes)."""

log = structlog.get_logger(__name__)


class Published(Struct, frozen=True):
    """The event as it was stamped, and where the broker keeps it."""

    event: Event
    receipt: Receipt


class Publisher:
    """The half of a queue that says: publish, tell the listeners, hear what is broadcast."""

    def __init__(self, broker: CompanyBroker, *, node_id: str, clock: Clock) -> None:
        self._broker = broker
        self._node_id = node_id
        self._clock = clock
        self._listeners: list[Listener] = []
        self._behind: dict[asyncio.Task[object], None] = {}

    def add_listener(self, listener: Listener) -> None:
        """Called on the publishing task after the broker stored the event. What it raises is
        logged: telemetry cannot fail a publish."""
        self._listeners.append(listener)

    async def publish(
        self,
        topic: str,
        event: Event,
        *,
        message_id: str = "",
        within_s: float = UNKNOWN_AFTER_S,
    ) -> Published:
        """Store the event under `message_id` (its own id unless told); the caller's event is
        never written to. Raises TooLarge before anything is sent, PublishUnknown after
        `within_s` seconds without an answer (or when the client stops meanwhile), NotLive where
        the client has stopped before anything was sent, NoMailbox for a seat's topic that no
        mailbox covers: nobody is told of an event that nobody keeps."""
        stamped = event.stamped(self._node_id)
        body = encode(stamped)
        if len(body) > MAX_EVENT_BYTES:
            raise TooLarge(
                f"event {event.id} has {len(body)} bytes; a mailbox takes {MAX_EVENT_BYTES}"
            )
        receipt = await self._until_known(topic, body, message_id or event.id, within_s)
        self._tell(topic, stamped)
        return Published(stamped, receipt)

    async def _until_known(
        self, topic: str, body: bytes, message_id: str, within_s: float
    ) -> Receipt:
        """Unknown is not failed: the same message id again, until the broker says or the time
        is up. A try that is cut off is unknown as well."""
        loop, unknown, pause_s = asyncio.get_running_loop(), False, RETRY_S
        deadline, left_s = loop.time() + within_s, within_s
        while True:
            try_s = min(PUBLISH_S, left_s)
            try:
                return await self._broker.publish(
                    topic, body, message_id=message_id, within_s=try_s
                )
            except Unavailable:
                unknown = True
            except NotLive:
                if not unknown:
                    raise
                # An earlier try may be stored: the client stopped before it could be known.
                raise PublishUnknown(message_id, topic, within_s) from None
            await asyncio.sleep(min(pause_s, deadline - loop.time()))
            pause_s = min(LONGEST_RETRY_S, pause_s * 2)
            left_s = deadline - loop.time()
            if left_s <= 0:
                raise PublishUnknown(message_id, topic, within_s)

    async def record(self, event: Event, *, within_s: float = 10.0) -> None:
        """Publish onto the record of what happened. A record that the broker does not take is
        logged and given up: what is recorded must not hold up what is done."""
        try:
            await self.publish(topics.event(event.type), event, within_s=within_s)
        except (BrokerError, CrewletError, ValueError) as error:  # ValueError: no topic, no text
            log.error("event_not_recorded", type=event.type, id=event.id, error=str(error))

    def record_soon(self, event: Event) -> None:
        """`record`, behind the caller's back; `flush` waits for it."""
        self._run_behind(self.record(event))

    async def flush(self, timeout_s: float) -> bool:
        """Wait for what goes on behind the callers' backs; False if some of it did not end."""
        if not self._behind:
            return True
        _, pending = await asyncio.wait(list(self._behind), timeout=timeout_s)
        for task in pending:
            task.cancel()
        return not pending

    async def subscribe_stream(self, pattern: str, handler: Listener) -> Subscription:
        """Every event from now on whose topic matches; nothing is acknowledged or held.
        Unavailable where the broker is gone: "from now on" could not be kept."""

        def heard(topic: str, body: bytes) -> None:
            try:
                event = decode(body)
            except CorruptEvent as error:
                log.error("corrupt_broadcast", topic=topic, error=str(error)[:200])
                return
            handler(topic, event)

        subscription = await self._broker.subscribe(pattern, heard)
        if not self._broker.connected:
            await subscription.close()
            raise Unavailable("the broker is away and hears of no new reader; try again")
        return subscription

    def _tell(self, topic: str, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(topic, event)
            except (Exception, asyncio.CancelledError):  # it may look at somebody's task
                log.exception("publish_listener_failed", topic=topic, id=event.id)

    def _run_behind(self, coroutine: Coroutine[Any, Any, object]) -> None:
        task: asyncio.Task[object] = asyncio.ensure_future(coroutine)
        self._behind[task] = None
        task.add_done_callback(lambda done: self._behind.pop(done, None))
