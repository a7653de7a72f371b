"""How fast a node that leaves lets go of its seats: as fast as others take them, and no faster.

A thousand seats that are let go of at once wait for one another at their successors, the last one
for seconds. So only a few are nobody's at a time, and all others are worked here until it is
their turn. How many is found by trying: one more where they were taken quickly, fewer where not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from actors.machines.placement import GiveUp
from actors.machines.window import Window

QUICK_S: Final = 0.01
"""Between the release of a seat and its successor's claim. With half of this and of
`actors.intake.QUICK_S` a thousand seats took 7 to 9 s to leave instead of 6, each without a node
for half as long; with twice as much 5 to 7 s, and for twice as long."""

ENDS_S: Final = 0.25
"""A seat that was given up and is not released after this has a turn that runs: no other waits
for it."""

TAKEN_S: Final = 1.0
"""One that nobody has taken after this is not waited for either."""


class Waves:
    """`now` is the node's monotonic clock."""

    def __init__(self) -> None:
        self._window = Window(QUICK_S)
        self._waiting: dict[str, GiveUp] = {}
        self._ending: dict[str, float] = {}
        self._free: dict[str, float] = {}

    @property
    def idle(self) -> bool:
        """Nothing waits, and nothing is on its way."""
        return not (self._waiting or self._ending or self._free)

    def plan(self, seats: Sequence[GiveUp]) -> None:
        """Let go of these from now on, in this order, and of no others."""
        self._waiting = {seat.handle: seat for seat in seats}

    def due(self, now: float) -> list[GiveUp]:
        """Those whose turn has come: from now on they are being let go of."""
        self._forget(now)
        room = self._window.size - len(self._ending) - len(self._free)
        found = [self._waiting.pop(handle) for handle in list(self._waiting)[: max(0, room)]]
        self._ending |= {seat.handle: now for seat in found}
        return found

    def at_once(self, handle: str, now: float) -> GiveUp | None:
        """This one out of its turn, there is mail for it; None where it is none of them."""
        seat = self._waiting.pop(handle, None)
        if seat is not None:
            self._ending[handle] = now
        return seat

    def released(self, handle: str, now: float) -> None:
        """It is nobody's now."""
        if self._ending.pop(handle, None) is not None:
            self._free[handle] = now

    def taken(self, handle: str, now: float) -> None:
        """Somebody has it."""
        self._ending.pop(handle, None)
        since = self._free.pop(handle, None)
        if since is not None:
            self._window.done(now - since)

    def next_at(self) -> float:
        """When there may be room although nothing was heard; infinite where nothing waits."""
        if not self._waiting:
            return float("inf")
        ends = (since + ENDS_S for since in self._ending.values())
        late = (since + TAKEN_S for since in self._free.values())
        return min((*ends, *late), default=float("-inf"))

    def _forget(self, now: float) -> None:
        """What is not waited for any more."""
        self._ending = {h: since for h, since in self._ending.items() if now - since < ENDS_S}
        late = [handle for handle, since in self._free.items() if now - since >= TAKEN_S]
        for handle in late:
            del self._free[handle]
            self._window.close()
