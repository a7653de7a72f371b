"""Broadcast subscriptions of the twin: in order, outside the publisher's task and context."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from typing import Final

import structlog

from crewlet.broker.patterns import matches, namespace_of
from crewlet.broker.port import Listen

_log: Final = structlog.get_logger(__name__)


class MemorySubscription:
    """One handler of one pattern. Messages wait in a queue of its own for the next loop turn."""

    def __init__(self, broadcast: Broadcast, pattern: str, handler: Listen) -> None:
        self.pattern = pattern
        self._broadcast = broadcast
        self._handler = handler
        self._queue: deque[tuple[str, bytes]] = deque()
        self._closed = False

    async def close(self) -> None:
        """No call of the handler begins after this returns. Idempotent."""
        self.end()

    def end(self) -> None:
        self._closed = True
        self._queue.clear()
        self._broadcast.forget(self)

    def tell(self, topic: str, body: bytes) -> None:
        """Queue a message. One call is scheduled for all: calls of one turn keep no order."""
        self._queue.append((topic, body))
        if len(self._queue) == 1:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._drain, context=contextvars.Context())

    def _drain(self) -> None:
        while self._queue and not self._closed:
            topic, body = self._queue[0]
            try:
                self._handler(topic, body)
            except Exception:
                _log.exception("broadcast_handler_failed", topic=topic, pattern=self.pattern)
            if self._queue:
                self._queue.popleft()


class Broadcast:
    """All subscriptions, in the order they were made."""

    def __init__(self) -> None:
        self._subscriptions: list[MemorySubscription] = []

    def open(self, pattern: str, handler: Listen) -> MemorySubscription:
        """From now on; ValueError for a pattern that spans every namespace."""
        namespace_of(pattern)
        subscription = MemorySubscription(self, pattern, handler)
        self._subscriptions.append(subscription)
        return subscription

    def forget(self, subscription: MemorySubscription) -> None:
        self._subscriptions = [s for s in self._subscriptions if s is not subscription]

    def tell(self, topic: str, body: bytes) -> None:
        for subscription in self._subscriptions:
            if matches(subscription.pattern, topic):
                subscription.tell(topic, body)
