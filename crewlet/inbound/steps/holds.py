"""What keeps a seat from working: whoever finds it takes the hold, and gives the mail back first.

A held seat fetches nothing. A delivery that comes all the same was on its way when the hold was
taken, or the hold was refused: so it is asked for again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from actors.delivery import Defer
from crewlet.inbound.work import Brakes, Work

NO_HANDLER: Final = "no handler"
"""The hold of a seat that nobody gave a handler: its mail waits, in order, at no cost."""

AGAIN_S: Final = 1.0
"""The brake that a deferral puts on by itself ends then; what holds the seat goes on."""

Reason = Callable[[Work], Awaitable[str]]
"""The name of a hold that should be there, empty where there is none."""


class Holds:
    """Looks for reasons to hold the seat."""

    def __init__(self, brakes: Brakes, *reasons: Reason) -> None:
        self._brakes = brakes
        self._reasons = reasons

    async def __call__(self, work: Work) -> Defer | None:
        for reason in self._reasons:
            if name := await reason(work):
                await self._brakes.hold(work.seat.handle, name)
                return Defer(f"held: {name}", retry_after_s=AGAIN_S)
        return None


async def nobody_works_it(work: Work) -> str:
    """A seat without a handler: the revision that gives it one lifts the hold."""
    return NO_HANDLER if work.handler is None else ""
