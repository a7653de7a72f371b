"""When the steps of a script are taken: the server's run is written down, the twin's follows.

A retry that is due "about now" is seen by one and not yet by the other; nothing could be learnt
from that. Whoever records therefore steps out of the way of every such moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol

EARLY_S: Final = 0.003
LATE_S: Final = 0.04
"""Around the moment at which something is due, no step is taken: a timer of a server that is
busy is late, the twin's never is."""

STEP_S: Final = 0.02
"""How long an ordinary step takes, at the most."""


class Pace(Protocol):
    """Says when the next step begins, and how time passes for its own sake."""

    async def turn(self, takes_s: float = STEP_S, delays_s: Iterable[float] = ()) -> None:
        """Wait for the next step's time. It takes so long, and begins these delays."""

    def due_in(self, delay_s: float) -> None:
        """Something comes back in so many seconds from now, counted from this step."""

    async def passes(self, seconds: float) -> None:
        """Time is the subject of the step."""


class Recorded:
    """Real time, written down."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._step = 0.0
        self._windows: list[tuple[float, float]] = []

    async def turn(self, takes_s: float = STEP_S, delays_s: Iterable[float] = ()) -> None:
        ahead = (0.0, *delays_s)
        while wait_s := max(self._in_the_way(self._now() + at, takes_s) for at in ahead):
            await asyncio.sleep(wait_s + 0.001)
        self._step = self._now()
        self.times.append(self._step)

    def due_in(self, delay_s: float) -> None:
        window = (self._step + delay_s - EARLY_S, self._now() + delay_s + LATE_S)
        self._windows.append(window)

    async def passes(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def _in_the_way(self, at: float, takes_s: float) -> float:
        """How long it is from `at` to the end of a window that would be met; 0.0: none is."""
        met = (end - at for begin, end in self._windows if begin <= at + takes_s and at <= end)
        return next(met, 0.0)

    def _now(self) -> float:
        return self._loop.time() - self._began


class Followed:
    """Virtual time, by what was written down."""

    def __init__(self, times: list[float]) -> None:
        self._times = iter(times)

    async def turn(self, takes_s: float = STEP_S, delays_s: Iterable[float] = ()) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, next(self._times) - loop.time()))

    def due_in(self, delay_s: float) -> None:
        """The twin's timers are exact."""

    async def passes(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
