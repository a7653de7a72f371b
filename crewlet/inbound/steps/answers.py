"""A message that a parked run waits for is offered to it before it becomes a turn.

The first one of the run's conversation after its question is recorded on the run, and done. A run
that takes it holds the seat again, and what is left of the partition waits for it.
"""

from __future__ import annotations

from typing import Final

import structlog

from actors.delivery import Defer, Letter
from crewlet.errors import StoreUnavailable
from crewlet.inbound.letters import event_of
from crewlet.inbound.work import Work
from crewlet.runs.runs import Runs

RESERVE: Final = 5
"""Deliveries that a message keeps for the ordinary route, where its run cannot be reached."""

AGAIN_S: Final = 1.0

UNRECORDED: Final = "the answer to a run could not be recorded"

log = structlog.get_logger(__name__)


class Answers:
    """Reads nothing where no run of the seat asks."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def __call__(self, work: Work) -> Defer | None:
        try:
            taken = await self._offered(work)
        except StoreUnavailable as error:  # its place is ahead of what the person says next
            log.warning("answer_not_recorded", seat=work.seat.handle, error=str(error))
            return Defer(UNRECORDED, retry_after_s=AGAIN_S)
        if taken is not None:
            work.finish([taken.id])
        held = await self._runs.holding(work) if work.letters else ""
        return Defer(f"held: {held}", retry_after_s=AGAIN_S) if held else None

    async def _offered(self, work: Work) -> Letter | None:
        """The letter that a run took."""
        for letter in work.letters:
            event = event_of(letter)
            run = self._runs.asked(work.seat.handle, event)
            if run is None or _on_its_last(letter):
                continue
            if await self._runs.offer(run, event):
                return letter
        return None


def _on_its_last(letter: Letter) -> bool:
    return letter.headroom is not None and letter.headroom <= RESERVE
