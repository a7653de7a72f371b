"""A turn is finished when the ledger says so: what it worked, and before that what it owes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog
from msgspec import Struct

from actors.failpoints import reached
from actors.tenure import Fenced
from crewlet.errors import StoreUnavailable
from crewlet.events import Trace
from crewlet.inbound.ledger import message_key
from crewlet.inbound.outbox import Finished
from crewlet.inbound.services import Services
from crewlet.inbound.work import Work

LEDGER_RETRY_S: Final = 1.0
LEDGER_TRIES: Final = 30
"""A completion is retried for about half a minute before the turn's mail goes back."""

log = structlog.get_logger(__name__)


class Finishing(Struct, frozen=True):
    """A turn whose work is done, or given up, and not on record yet."""

    work: Work
    turn_id: str
    trace: Trace
    answer: str | None = None


class Completions:
    """Of every seat of the node."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def record(self, turn: Finishing, shown: Sequence[str] = ()) -> list[str] | None:
        """Write the triggers down as worked, along with the messages that it was shown; and
        before them what it owes to others, so that a node that dies after the completion leaves
        that to whoever comes next. What there is to say of that; None where nobody says whether
        it is done. Raises Fenced where the seat is somebody else's."""
        letters, messages = turn.work.letters, (message_key(one) for one in shown)
        ids = list(dict.fromkeys((*(letter.id for letter in letters), *messages)))
        for _ in range(LEDGER_TRIES):
            try:
                return await self._record(turn, ids)
            except Fenced:
                log.warning("completion_fenced", seat=turn.work.seat.handle, turn=turn.turn_id)
                raise
            except StoreUnavailable as error:
                log.warning("ledger_unwritable", turn=turn.turn_id, error=str(error))
                await asyncio.sleep(LEDGER_RETRY_S)
        return None

    async def _record(self, turn: Finishing, ids: Sequence[str]) -> list[str]:
        services, fence = self._services, turn.work.partition.fence
        finished = Finished(
            handle=turn.work.seat.handle,
            turn_id=turn.turn_id,
            letters=turn.work.letters,
            answer=turn.answer or "",
            trace=turn.trace,
            at=services.clock.now(),
            epoch=fence.epoch if fence is not None else 0,
        )
        notes = [await outbox.keep(finished) for outbox in services.outboxes]
        reached("before_complete")
        await services.ledger.record(
            finished.handle,
            ids,
            turn_id=turn.turn_id,
            node=services.node_id,
            at=services.clock.now(),
            fence=fence,
        )
        return notes

    async def send(self, turn: Finishing) -> list[str]:
        """What is owed for a turn on record goes out."""
        handle, letters = turn.work.seat.handle, turn.work.letters
        return [await outbox.send(handle, letters) for outbox in self._services.outboxes]
