"""What a finished turn has worked is done, whatever becomes of the rest; said for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from actors.delivery import Letter
from actors.ports import Clock
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.events.types import TurnTriggerSkipped
from crewlet.inbound.ids import derived_id
from crewlet.inbound.ledger import Ledger, Worked
from crewlet.inbound.letters import event_of
from crewlet.inbound.outbox import Outbox
from crewlet.inbound.work import Work
from crewlet.queue import Publisher

ALREADY_WORKED: Final = "a finished turn has worked this trigger"


class WorkedBefore:
    """Asks the completion ledger; what it does not answer, it did not forbid. What the turn owed,
    and may not have sent before its node died, goes out now."""

    def __init__(
        self, ledger: Ledger, queue: Publisher, clock: Clock, outboxes: Sequence[Outbox] = ()
    ) -> None:
        self._ledger = ledger
        self._queue = queue
        self._clock = clock
        self._outboxes = outboxes

    async def __call__(self, work: Work) -> None:
        worked = await self._ledger.worked(work.seat.handle, [one.id for one in work.letters])
        for letter in work.letters:
            if row := worked.get(letter.id):
                await self._say(work.seat.handle, letter, row)
                for outbox in self._outboxes:
                    await outbox.send(work.seat.handle, [letter])
        work.finish(worked)

    async def _say(self, handle: str, letter: Letter, row: Worked) -> None:
        trigger = event_of(letter)
        body = TurnTriggerSkipped(
            agent_role=handle,
            trigger_id=trigger.id,
            reason=ALREADY_WORKED,
            worked_by=row.turn_id,
            completed_at=row.completed_at,
        )
        event = Event.new(
            types.TURN_TRIGGER_SKIPPED,
            id=derived_id(trigger.id, handle, "skipped", row.turn_id),
            at=self._clock.now(),
            trace=trigger.trace.child(),
            body=body,
        )
        await self._queue.record(event)
