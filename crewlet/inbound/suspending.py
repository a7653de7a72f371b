"""A turn whose work goes on elsewhere: its row and the hold first, then its end.

Whatever stops this half way, the row proves that the turn has suspended: whoever takes the seat, or
ends the run, writes down what it worked.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from actors.delivery import Ack, Defer
from actors.failpoints import reached
from actors.tenure import Fenced
from crewlet.errors import StoreUnavailable
from crewlet.inbound.letters import event_of
from crewlet.inbound.services import Services
from crewlet.inbound.work import Work
from crewlet.runs.notices import triggers_of
from crewlet.runs.row import Origin
from crewlet.runs.runs import Opened
from crewlet.turn import Turn

TRIES: Final = 30
AGAIN_S: Final = 1.0
"""As long as a completion is tried: about half a minute."""

UNDECIDED: Final = "the store did not say whether the run was opened and its turn recorded"

log = structlog.get_logger(__name__)


class Suspending:
    """Suspends turns, for every seat of the node."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = services.clock

    async def suspend(self, work: Work, turn: Turn, run_id: str) -> Ack | Defer:
        """Ack once the row is open, the seat held and the turn's triggers worked. Raises Fenced
        where the seat is somebody else's: then nothing is left of it."""
        opened: Opened | None = None
        for _ in range(TRIES):
            try:
                opened = opened or await self._open(work, turn, run_id)
                reached("after_run_opened")
                await self._record(work, turn)
            except Fenced:
                log.warning("suspension_fenced", seat=work.seat.handle, turn=turn.turn_id)
                if opened is not None:
                    await self._services.runs.withdraw(opened)
                raise
            except StoreUnavailable as error:
                log.warning("suspension_unwritable", turn=turn.turn_id, error=str(error))
                await asyncio.sleep(AGAIN_S)
                continue
            reached("after_complete_before_ack")
            return Ack()
        return Defer(reason=UNDECIDED)

    async def _open(self, work: Work, turn: Turn, run_id: str) -> Opened:
        fence = work.partition.fence
        origin = Origin(
            turn_id=turn.turn_id,
            node=self._services.node_id,
            epoch=0 if fence is None else fence.epoch,
            agent_id=work.seat.agent_id,
            partition_key=turn.conversation.partition_key,
            conversation_identity=turn.conversation.conversation_identity,
            triggers=triggers_of([event_of(letter) for letter in work.letters]),
            traceparent=turn.traceparent,
            depth=turn.delegation_depth,
            chain=turn.delegation_chain,
            work_item=turn.work_item,
        )
        return await self._services.runs.open(work.seat.handle, run_id, origin)

    async def _record(self, work: Work, turn: Turn) -> None:
        await self._services.ledger.record(
            work.seat.handle,
            [event.id for event in turn.events],
            turn_id=turn.turn_id,
            node=self._services.node_id,
            at=self._clock.now(),
            fence=work.partition.fence,
        )
