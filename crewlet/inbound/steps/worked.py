"""What a finished turn has worked is done, whatever becomes of the rest; said for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from actors.delivery import Letter
from actors.ports import Clock
from crewlet.inbound.constituent import whatever_of
from crewlet.inbound.ledger import Ledger, Worked, message_key
from crewlet.inbound.letters import event_of
from crewlet.inbound.outbox import Outbox
from crewlet.inbound.skipped import trigger_skipped
from crewlet.inbound.work import Work
from crewlet.queue import Publisher

ALREADY_WORKED: Final = "a finished turn has worked this trigger"
ANSWERED_IN_THREAD: Final = "a later turn answered this message in its thread"


class WorkedBefore:
    """Asks the completion ledger; what it does not answer, it did not forbid. What the turn owed,
    and may not have sent before its node died, goes out now.

    A row is of an event, or of a message that a turn was shown while it waited (`message_key`).
    """

    def __init__(
        self, ledger: Ledger, queue: Publisher, clock: Clock, outboxes: Sequence[Outbox] = ()
    ) -> None:
        self._ledger = ledger
        self._queue = queue
        self._clock = clock
        self._outboxes = outboxes

    async def __call__(self, work: Work) -> None:
        messages = {one.id: key for one in work.letters if (key := _message(one))}
        ids = [*(one.id for one in work.letters), *messages.values()]
        rows = await self._ledger.worked(work.seat.handle, list(dict.fromkeys(ids)))
        worked: list[str] = []
        for letter in work.letters:
            row, reason = rows.get(letter.id), ALREADY_WORKED
            if row is None:
                row, reason = rows.get(messages.get(letter.id, "")), ANSWERED_IN_THREAD
            if row is None:
                continue
            worked.append(letter.id)
            await self._say(work.seat.handle, letter, row, reason)
            for outbox in self._outboxes:
                await outbox.send(work.seat.handle, [letter])
        work.finish(worked)

    async def _say(self, handle: str, letter: Letter, row: Worked, reason: str) -> None:
        skip = trigger_skipped(
            event_of(letter),
            handle,
            reason=reason,
            turn_id=row.turn_id,
            completed_at=row.completed_at,
            at=self._clock.now(),
        )
        await self._queue.record(skip)


def _message(letter: Letter) -> str:
    """The ledger's key of the message that a letter tells of; empty where it tells of none."""
    return message_key(whatever_of(event_of(letter)).message)
