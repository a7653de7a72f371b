"""What may be missed for a while, and why: mail that its holder cannot know of.

An excuse names the fault of the trace that it is for, and it runs out: later than a client can
repair it the runtime still finds such mail, by its looks for what is in nobody's hands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from actors.simulation.history import Record
from actors.strays import LATE_S, LATE_SPREAD_S

Place = tuple[str, int]

FORGOTTEN: Final = "a killed broker forgot that it was handed back"
LOST: Final = "lost in an outage longer than its client repairs"

CAUSES: Final = ("cut", "swizzle", "slow", "pause", "leader_loss", "broker_restart")
"""The faults that may lose what was on its way between a node and the broker."""

AFTER_S: Final = 60.0
"""How long after its fault's end a loss may show: a hold of 40 s puts off the next fetch."""

HELD_UP_S: Final = 23.0
"""A look is put off while no fetch stands, and two have to agree."""

FOUND_S: Final = LATE_S + LATE_SPREAD_S + HELD_UP_S
"""Within so long of its loss, and of the last fault, it is in somebody's hands again: that late a
mailbox is looked at that changed hands in order. One that is watched is looked at more often to
the end (a quarter of how long it has been watched), and what one look saw the next takes."""


class Excuse(Struct, frozen=True):
    """`cause` is the record of the fault that it is for."""

    why: str
    since: float
    cause: Record

    def __str__(self) -> str:
        cause = self.cause
        return f"{self.why}: {cause.code} of {cause.node or 'all'} at {cause.t:.3f}"


class Excuses:
    """By seat and position. `given` counts those that there ever were."""

    def __init__(self) -> None:
        self._for: dict[Place, Excuse] = {}
        self._faults: dict[str, Record] = {}
        self.given = 0
        self.longest_s = 0.0

    def __contains__(self, place: Place) -> bool:
        return place in self._for

    def __len__(self) -> int:
        return len(self._for)

    def get(self, place: Place) -> Excuse | None:
        return self._for.get(place)

    def fault(self, record: Record) -> None:
        """Of each node the one that lasts longest is remembered."""
        if record.code not in CAUSES:
            return
        known = self._faults.get(record.node)
        if known is None or record.t + record.sent >= known.t + known.sent:
            self._faults[record.node] = record

    def give(self, places: Iterable[Place], why: str, told: Record) -> None:
        """Unless nothing had befallen whoever `told` so: then there is nothing to excuse."""
        cause = self._cause(told)
        if cause is None:
            return
        for place in places:
            if place not in self._for:
                self.given += 1
            self._for[place] = Excuse(why, told.t, cause)

    def _cause(self, told: Record) -> Record | None:
        found = [
            fault
            for node in (told.node, "")
            if (fault := self._faults.get(node)) is not None
            and told.t <= fault.t + fault.sent + AFTER_S
        ]
        return max(found, key=lambda fault: fault.t, default=None)

    def drop(self, place: Place, now: float, calm: float | None) -> None:
        """It was handed out again, or settled."""
        excuse = self._for.pop(place, None)
        if excuse is not None and calm is not None:
            self.longest_s = max(self.longest_s, now - max(excuse.since, calm))

    def run_out(self, now: float, calm: float) -> Iterator[tuple[Place, Excuse]]:
        """Those that held for too long; they are none any more."""
        for place, excuse in list(self._for.items()):
            if now > max(excuse.since, calm) + FOUND_S:
                del self._for[place]
                yield place, excuse
