"""What is left of a partition becomes one trigger, or - where it cannot - so many turns."""

from __future__ import annotations

from typing import Final

import structlog

from actors.delivery import Letter, Nak
from actors.ports import BrokerError, Clock
from crewlet import topics
from crewlet.errors import CorruptEvent, CrewletError
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.events.triggers import NotificationsCoalesced
from crewlet.inbound.coalesce import Trigger, coalesce
from crewlet.inbound.ids import derived_id
from crewlet.inbound.letters import alone, event_of
from crewlet.inbound.work import Work
from crewlet.queue import Publisher

NOT_TAKEN_APART: Final = "it cannot be merged, and not be taken apart either"

log = structlog.get_logger(__name__)


class Coalesced:
    """Gives the work its trigger."""

    def __init__(self, queue: Publisher, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock

    async def __call__(self, work: Work) -> Nak | None:
        events = [event_of(letter) for letter in work.letters]
        if not events:
            return None
        try:
            work.trigger = coalesce(events)
        except CorruptEvent as fault:
            return await self._apart(work, str(fault))
        if len(events) > 1:
            await self._record(work, work.trigger)
        return None

    async def _apart(self, work: Work, fault: str) -> Nak | None:
        """Everything but the first goes back as mail of its own, and only then the first is
        worked: a completed turn must not come again because a later message failed. The copies
        keep the events' ids, so that an original that comes all the same is known in the ledger.
        """
        handle, (_, *tail) = work.seat.handle, work.letters
        log.warning("partition_not_mergeable", seat=handle, key=work.partition.key, error=fault)
        for letter in tail:
            try:
                await self._requeue(handle, letter)
            except (BrokerError, CrewletError) as error:
                return Nak(f"{NOT_TAKEN_APART}: {fault}; {error}"[:500])
        work.finish([letter.id for letter in tail])
        work.trigger = coalesce([event_of(work.letters[0])])
        return None

    async def _requeue(self, handle: str, letter: Letter) -> None:
        """Under an id that follows from the event: taken apart once more, it is stored once."""
        event = event_of(letter)
        again = derived_id(event.id, handle, "apart")
        await self._queue.publish(topics.inbox(handle), alone(event), message_id=again)

    async def _record(self, work: Work, trigger: Trigger) -> None:
        ids = tuple(one.id for one in trigger.constituents)
        body = NotificationsCoalesced(
            agent_id=work.seat.agent_id,
            agent_role=work.seat.handle,
            partition_key=work.partition.key,
            triggers=ids,
            count=len(ids),
        )
        event = Event.new(
            types.NOTIFICATIONS_COALESCED,
            id=derived_id(work.seat.handle, "coalesced", *ids),
            at=self._clock.now(),
            trace=trigger.trace.child(),
            body=body,
        )
        await self._queue.record(event)
