"""Whether this node may still start a turn of the seat."""

from __future__ import annotations

from typing import Final

from actors.delivery import Defer
from actors.ports import Clock
from crewlet.inbound.work import Work

UNCONFIRMED: Final = "the node could not confirm its session before the turn began"
UNCONFIRMED_S: Final = 1.0


class Admission:
    """Asked again by whoever waited since: the answer is one of a moment."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(self, work: Work) -> Defer | None:
        right = work.partition.right
        if right is None or right.may_start(self._clock.monotonic()):
            return None
        return Defer(UNCONFIRMED, retry_after_s=UNCONFIRMED_S)
