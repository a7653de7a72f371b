"""The world: one time for everybody, and what happens next in it.

It is a loop itself. What runs on it is not stopped by anything: the broker, the operator, the
faults. Processes (`Process`) have loops of their own that live inside this one.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from random import Random
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack

from actors.simulation.loop import Call, SimulatedLoop, close_tasks, enter
from actors.system.virtual import Deadlock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Taker(Protocol):
    """Somebody who is handed what has come due for it."""

    def take(self, call: Call) -> None: ...


class Runner(Protocol):
    """A loop that has something to run."""

    def round(self) -> None:
        """Run what was ready when this began."""


class World(SimulatedLoop):
    """Virtual seconds since it was made; the same seed gives the same history.

    `step` counts what has come due: with the seed it names a moment exactly.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(Random(seed))  # noqa: S311 - a simulation, not a secret
        self.now = 0.0
        self.step = 0
        self._heap: list[tuple[float, int, Taker, Call]] = []
        self._count = 0
        self._calls: deque[Call] = deque()
        self._ready: deque[Runner] = deque()
        self._over = False

    # -- time

    def time(self) -> float:
        return self.now

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        call = Call(0.0, callback, args, self, context)
        self.take(call)
        return call

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        call = Call(when, callback, args, self, context)
        self.due(when, self, call)
        return call

    def due(self, when: float, taker: Taker, call: Call) -> None:
        """Hand `call` to `taker` at that time."""
        self._count += 1
        heappush(self._heap, (when, self._count, taker, call))

    # -- what is ready

    def take(self, call: Call) -> None:
        if not self._calls:
            self._ready.append(self)
        self._calls.append(call)

    def runnable(self, runner: Runner) -> None:
        """It has something to run; said once until it is asked to."""
        self._ready.append(runner)

    def round(self) -> None:
        calls, self._calls = self._calls, deque()
        for call in calls:
            call.run()

    # -- running

    def run(self, main: Coroutine[Any, Any, T]) -> T | None:
        """Run until `main` is done: its result, or what it raises. None: it was stopped."""
        enter(self)
        try:
            task = self.create_task(main)
            task.add_done_callback(self._end)
            self._run()
            return task.result() if task.done() else None
        finally:
            enter(None)

    def close(self) -> None:
        """Nothing of it is left to run, or to be cleaned up in somebody else's run."""
        enter(self)
        try:
            close_tasks(self)
        finally:
            enter(None)
        self._heap.clear()
        self._calls.clear()
        self._ready.clear()

    def stop(self) -> None:
        """Let nothing more happen: the run ends with what runs now."""
        self._over = True

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._over = True

    def _run(self) -> None:
        heap, ready = self._heap, self._ready
        while not self._over:
            if ready:
                ready.popleft().round()
                continue
            if not heap:
                raise Deadlock("nothing is ready and no timer is set")
            when, _, taker, call = heappop(heap)
            if call._cancelled:
                continue
            if when > self.now:
                self.now = when
            self.step += 1
            if taker is self:  # nothing else is ready: it need not stand in line
                call.run()
            else:
                taker.take(call)
