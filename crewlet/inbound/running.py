"""Which turns run on this node, for how long, and how many may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from msgspec import Struct, field

from actors.delivery import Nak, Outcome
from crewlet.inbound.wakers import Wakes
from crewlet.turn import Desk


class RunningTurn(Struct):
    """`overdue` says why a turn that should have ended is still seen running, `stopped_by` who
    asked it to stop. `woken_by` is a seat, or whoever else sent its latest event."""

    turn_id: str
    seat: str
    conversation: str
    started_at: datetime
    overdue: str = ""
    stopped_by: str = ""
    woken_by: str = ""


class SeatTally(Struct):
    """Of one seat, since this process started. `failure` is why its last turn failed, where it
    did and the seat has not been away since."""

    turns: int = 0
    last_turn: datetime | None = None
    failure: str = ""
    wakes: Wakes = field(default_factory=Wakes)


class Turns:
    """The node's turns: a gate that lets so many run at once, and a list of those that do.

    What waits at the gate waits in this process; it is never handed back for waiting.
    """

    def __init__(self, max_concurrent: int) -> None:
        self._gate = asyncio.Semaphore(max_concurrent)
        self._running: dict[str, RunningTurn] = {}
        self._tallies: dict[str, SeatTally] = {}
        self._desks: dict[str, Desk] = {}
        self._halted: set[str] = set()
        self._told: dict[str, asyncio.Event] = {}

    @property
    def full(self) -> bool:
        """Nothing more may run until something ends."""
        return self._gate.locked()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A place among those that may run at once, for as long as it is held."""
        async with self._gate:
            yield

    def started(self, turn: RunningTurn, desk: Desk | None = None) -> None:
        """`desk` is what it may ask of the node, by way of a process of its own too."""
        self._running[turn.turn_id] = turn
        self._told[turn.turn_id] = asyncio.Event()
        self._tally(turn.seat).wakes.woken(turn.woken_by, turn.started_at)
        if desk is not None:
            self._desks[turn.turn_id] = desk

    def ended(self, turn_id: str, at: datetime) -> None:
        turn = self._running.pop(turn_id, None)
        self._told.pop(turn_id, None)
        self._desks.pop(turn_id, None)
        if turn is not None:
            tally = self._tally(turn.seat)
            tally.turns += 1
            tally.last_turn = at

    def fared(self, seat: str, outcome: Outcome) -> None:
        """What came of its last turn: remembered where that is a failure."""
        self._tally(seat).failure = outcome.reason if isinstance(outcome, Nak) else ""

    def arrived(self, seat: str) -> None:
        """It is worked here from now on: where it was meanwhile, another turn was its last."""
        if seat in self._tallies:
            self._tallies[seat].failure = ""

    def _tally(self, seat: str) -> SeatTally:
        return self._tallies.setdefault(seat, SeatTally())

    def overdue(self, turn_id: str, reason: str) -> None:
        """The turn's outcome is decided, but its handler has not let go."""
        if turn_id in self._running:
            self._running[turn_id].overdue = reason

    # -- stopped by a person ------------------------------------------------------------

    def halt(self, seat: str, by: str) -> bool:
        """Ask the seat's running turn to stop, and start none of it until `go_on`. Whether one
        runs that was not asked before."""
        self._halted.add(seat)
        turn = self.running(seat)
        if turn is None or turn.stopped_by:
            return False
        turn.stopped_by = by
        self._told[turn.turn_id].set()
        return True

    def go_on(self, seat: str) -> None:
        """Turns of the seat may start again. One that was asked to stop stays asked."""
        self._halted.discard(seat)

    def halted(self, seat: str) -> bool:
        return seat in self._halted

    def stopped_by(self, turn_id: str) -> str:
        """Who asked the turn to stop; empty where nobody did."""
        turn = self._running.get(turn_id)
        return turn.stopped_by if turn is not None else ""

    async def stopping(self, turn_id: str) -> None:
        """Return once the turn was asked to stop; at once where it does not run."""
        told = self._told.get(turn_id)
        if told is not None:
            await told.wait()

    # -- who asks -----------------------------------------------------------------------

    def desk_of(self, turn_id: str) -> Desk | None:
        """That of a turn which runs here."""
        return self._desks.get(turn_id)

    def running(self, seat: str) -> RunningTurn | None:
        return next((turn for turn in self._running.values() if turn.seat == seat), None)

    def all_running(self) -> list[RunningTurn]:
        return list(self._running.values())

    def tally(self, seat: str) -> SeatTally:
        return self._tallies.get(seat, SeatTally())
