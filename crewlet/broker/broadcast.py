"""What every node hears: messages as they are published, to whoever listens just then."""

from __future__ import annotations

import structlog

from crewlet.broker.patterns import namespace_of
from crewlet.broker.port import Listen
from crewlet.broker.route import Message
from crewlet.broker.wire import Wire

log = structlog.get_logger(__name__)


class Broadcast:
    """One subscription. At most once: what is published while the connection is down is not
    heard, and the event store is asked for it. A publish that is repeated under its id is
    heard again; a listener that minds looks at the event's own id.

    It is a plain subscription on the topics, beside the streams that keep them: it costs the
    broker no consumer, and a slow listener holds up nobody.
    """

    def __init__(self, wire: Wire, pattern: str, handler: Listen) -> None:
        namespace_of(pattern)
        self._wire = wire
        self._handler = handler
        self._pattern = pattern
        self._open = True
        self._route = wire.route(pattern, self._deliver)

    async def close(self) -> None:
        if self._open:
            self._open = False
            self._wire.drop(self._route)

    def _deliver(self, message: Message) -> None:
        if not self._open:
            return
        try:
            self._handler(message.subject, message.data)
        except Exception:
            log.exception("broadcast_listener_failed", pattern=self._pattern)
