"""Turns that are given up for good: worked as far as they ever will be, and never in silence."""

from __future__ import annotations

from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.events.triggers import Guard, TurnGuardBreach
from crewlet.inbound.ids import derived_id
from crewlet.inbound.letters import conversation_identity, event_of
from crewlet.inbound.services import Services
from crewlet.inbound.skipped import trigger_skipped
from crewlet.inbound.work import Work


class GivenUp:
    """Says it twice: of each trigger that no turn runs for it any more, and of the turn why."""

    def __init__(self, services: Services) -> None:
        self._queue = services.queue
        self._clock = services.clock

    async def announce(self, work: Work, turn_id: str, guard: Guard, reason: str) -> None:
        triggers = [event_of(letter) for letter in work.letters]
        for trigger in triggers:
            now = self._clock.now()
            skip = trigger_skipped(
                trigger,
                work.seat.handle,
                reason=reason,
                turn_id=turn_id,
                completed_at=now,
                at=now,
            )
            await self._queue.record(skip)
        await self.breach(work, turn_id, guard, reason)

    async def breach(self, work: Work, turn_id: str, guard: Guard, reason: str) -> None:
        """Of the turn alone: what becomes of its triggers is another matter."""
        triggers = [event_of(letter) for letter in work.letters]
        body = TurnGuardBreach(
            turn_id=turn_id,
            agent_id=work.seat.agent_id,
            agent_role=work.seat.handle,
            triggers=tuple(trigger.id for trigger in triggers),
            guard=guard,
            reason=reason,
            conversation_key=conversation_identity(triggers[0]),
        )
        trace = triggers[0].trace.child()
        breach = Event.new(
            types.TURN_GUARD_BREACH,
            id=derived_id(turn_id, types.TURN_GUARD_BREACH),
            at=self._clock.now(),
            trace=trace,
            body=body,
        )
        await self._queue.record(breach)
