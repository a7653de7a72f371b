"""From a partition of a seat's inbox to a settled turn: the way, and its order.

Before anything else it is asked whether the seat may work at all: admission, holds. Then letters
fall out that need no turn: what the ledger has, and what answers a run. What is left becomes one
trigger, waits for a slot, and is a turn (crewlet.inbound.turn_run).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from actors.delivery import Ack, Defer, Outcome, Partition, Partly
from crewlet.inbound.services import Services
from crewlet.inbound.steps.admission import Admission
from crewlet.inbound.steps.answers import Answers
from crewlet.inbound.steps.coalesced import Coalesced
from crewlet.inbound.steps.duplicates import drop_duplicates
from crewlet.inbound.steps.holds import AGAIN_S, Holds, nobody_works_it
from crewlet.inbound.steps.worked import WorkedBefore
from crewlet.inbound.turn_run import TurnRun
from crewlet.inbound.work import AtWork, Step, Work

STOPPED: Final = "a person paused the seat and stopped its turn"


class Dispatch:
    """Of one seat. `run` is the handler of its inbox; `current` is who works it now."""

    def __init__(self, current: Callable[[], AtWork], services: Services) -> None:
        self._current = current
        self._turns = services.turns
        self._admission = Admission(services.clock)
        self._steps = steps_of(services)
        self._turn = TurnRun(services)

    async def run(self, partition: Partition) -> Outcome | Partly:
        work = Work(partition, self._current())
        for step in self._steps:
            if (outcome := await step(work)) is not None:
                return work.outcome(outcome)
            if not work.letters:
                return Ack()
        async with self._turns.slot():
            # Asked again: the steps and the wait for a slot took their time.
            outcome = await self._admission(work) or self._halted(work)
            outcome = outcome or await self._turn.run(work)
        return work.outcome(outcome)

    def _halted(self, work: Work) -> Defer | None:
        """A person stops this seat's turns: one that has not begun does not begin."""
        halted = self._turns.halted(work.seat.handle)
        return Defer(STOPPED, retry_after_s=AGAIN_S) if halted else None


def steps_of(services: Services) -> Sequence[Step]:
    """What a partition goes through before its turn, in this order."""
    return (
        drop_duplicates,
        Admission(services.clock),
        Holds(services.brakes, nobody_works_it, services.runs.holding),
        WorkedBefore(services.ledger, services.queue, services.clock, services.outboxes),
        Answers(services.runs),
        Coalesced(services.queue, services.clock),
    )
