"""What is told about revisions: into the record, and as a nudge to other nodes.

A nudge is worth a look at the store, and nothing else: one that is lost costs until the next look.
"""

from __future__ import annotations

from typing import Final

import structlog
from msgspec import Struct

from actors.ports import BrokerError, Clock
from crewlet import topics
from crewlet.errors import CrewletError
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.revisions import ConfigRevisionActivated, ConfigRevisionApplied
from crewlet.queue import Publisher
from crewlet.revisions.difference import Difference
from crewlet.revisions.revision import Revision
from crewlet.revisions.standing import Standing

ACTIVATED: Final = "revision_activated"
APPLIED: Final = "revision_applied"

NUDGE_S: Final = 2.0

log = structlog.get_logger(__name__)


class News:
    """Of one node."""

    def __init__(self, queue: Publisher, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock

    async def activated(self, revision: Revision, change: Difference) -> None:
        """To be told by whoever activated it, once that is certain."""
        body = ConfigRevisionActivated(
            actor=revision.by,
            revision=revision.number,
            digest=revision.digest,
            summary=f"{revision.by} applied revision {revision.number} of {revision.company}",
            added=change.added,
            removed=change.removed,
            changed=tuple(seat.handle for seat in change.changed),
        )
        await self._tell(types.CONFIG_REVISION_ACTIVATED, ACTIVATED, body)

    async def again(self) -> None:
        """The active one is to be tried once more by whoever could not take it."""
        await self._nudge(ACTIVATED, self._event(types.CONFIG_REVISION_ACTIVATED, None))

    async def taken(self, standing: Standing, node: str) -> None:
        """This node works by it now."""
        body = ConfigRevisionApplied(
            revision=standing.number,
            digest=standing.digest,
            applied=True,
            summary=f"{node} works by revision {standing.number}",
        )
        await self._tell(types.CONFIG_REVISION_APPLIED, APPLIED, body)

    async def refused(self, active: Revision, standing: Standing, node: str) -> None:
        """This node cannot work by it, and goes on with what it had."""
        body = ConfigRevisionApplied(
            revision=active.number,
            digest=active.digest,
            applied=False,
            summary=f"{node} cannot work by revision {active.number}: {standing.reason}",
            reason=standing.reason,
            tries=standing.tries,
        )
        await self._tell(types.CONFIG_REVISION_APPLIED, APPLIED, body)

    async def _tell(self, kind: str, what: str, body: Struct) -> None:
        event = self._event(kind, body)
        await self._nudge(what, event)
        await self._queue.record(event)

    async def _nudge(self, what: str, event: Event) -> None:
        # An id of its own: the record has the event's.
        told = f"{event.id}:{what}"
        try:
            await self._queue.publish(topics.config(what), event, message_id=told, within_s=NUDGE_S)
        except (BrokerError, CrewletError) as error:
            log.warning("nudge_not_sent", what=what, error=str(error))

    def _event(self, kind: str, body: Struct | None) -> Event:
        return Event.new(kind, at=self._clock.now(), trace=Trace.current(), body=body)
