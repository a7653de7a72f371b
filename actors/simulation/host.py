"""One node of the fleet, through all its processes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Protocol

from msgspec import Struct

from actors.ports import Broker
from actors.runtime import SeatRuntime
from actors.simulation.history import History
from actors.simulation.links import LinkedBroker
from actors.simulation.process import Process, ProcessClock
from actors.simulation.wire import Line, Wire


class Note(Protocol):
    """Writes a record of one process."""

    def __call__(self, kind: str, **fields: object) -> None: ...


class WatchWeather(Struct):
    """What befalls the watch of leases of one node."""

    gap: bool = False
    late_s: float = 0.0
    twice: bool = False


class Office(Protocol):
    """What the broker keeps of one process: its client at the broker's end."""

    @property
    def broker(self) -> Broker: ...

    def gone(self) -> None:
        """The process is dead, and the broker has found out."""

    def mended(self, since: float) -> None:
        """The line had broken at `since` and is whole again: pulls and watches begin anew."""

    def resync(self) -> None:
        """Watches may have missed something: they tell everything anew."""


class Host:
    """`inc` counts its processes; `process` is None while none runs. `points` are the armed
    failpoints: how many more passes, and after how long the next process is started."""

    def __init__(self, name: str, index: int, random: Random) -> None:
        self.name = name
        self.index = index
        self.line = Line(random)
        self.watch = WatchWeather()
        self.inc = 0
        self.process: Process | None = None
        self.clock: ProcessClock
        self.wire: Wire
        self.office: Office
        self.broker: LinkedBroker
        self.runtime: SeatRuntime | None = None
        self.points: dict[str, tuple[int, float]] = {}
        self.crash: Callable[[float, str], None] = _nothing
        self.history: History
        self.leaving = False

    @property
    def id(self) -> str:
        """This process's incarnation."""
        return f"{self.name}#{self.inc}"

    @property
    def up(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def works(self) -> bool:
        """It runs, and its program has started."""
        return self.process is not None and self.process.alive and self.runtime is not None

    def point(self, name: str) -> bool:
        """A named edge was reached; True where the process was killed at it."""
        if self.process is None or not self.process.alive:
            return True
        armed = self.points.get(name)
        if armed is None:
            return False
        passes, restart_s = armed
        if passes > 1:
            self.points[name] = passes - 1, restart_s
            return False
        del self.points[name]
        self.crash(restart_s, name)
        return True

    def run(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Begin something inside the process, as if a message had asked for it."""
        process = self.process
        if process is not None:
            process.bring(lambda: process.create_task(_quietly(work)))

    def noter(self) -> Note:
        """Writes down what the process that runs now does, for as long as it lives."""
        process, inc, history, name = self.process, self.inc, self.history, self.name

        def note(kind: str, **fields: object) -> None:
            if process is not None and process.alive:
                history.add(kind, node=name, inc=inc, **fields)

        return note

    def note(self, kind: str, **fields: object) -> None:
        """Write down what happened in this process, now."""
        self.noter()(kind, **fields)


async def _quietly(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """An operator whose request comes to nothing has no bearing on the run."""
    try:
        await work()
    except Exception:
        return


def _nothing(restart_s: float, why: str) -> None:
    """Until a fleet says what a crash is."""
