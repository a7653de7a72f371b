"""A process: a loop of its own inside the world, that can be stopped, resumed and killed.

What is due while it is stopped waits, as a timer and a socket do under SIGSTOP, and comes all
at once at the resume: what the network brought in the order it came, timers in theirs, the
two mixed as the seed has it. A killed process never runs again.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from actors.simulation.loop import Call, SimulatedLoop, close_tasks, enter, running
from actors.simulation.world import World
from actors.system.clock import EPOCH

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


CALLS_A_ROUND: Final = 256
"""Callbacks of one process before the others have their turn: no time passes meanwhile."""


class Process(SimulatedLoop):
    """One incarnation of a node. `rate` is how fast its monotonic clock runs (1.0 is true),
    `offset` where it began: clocks of two processes have nothing to do with each other."""

    def __init__(
        self, world: World, name: str, *, rate: float = 1.0, offset: float = 0.0, seed: int = 0
    ) -> None:
        super().__init__(Random(seed))  # noqa: S311 - a simulation, not a secret
        self.world = world
        self.name = name
        self.alive = True
        self.stopped = False
        self.rate = rate
        self._offset = offset
        self._born = world.now
        self._floor = offset
        self._ready: deque[Call] = deque()
        self._scheduled = False
        self._fuse: int | None = None
        self._late_mail: deque[Call] = deque()
        self._late_timers: deque[Call] = deque()

    def time(self) -> float:
        """Its monotonic clock. Never before a timer that has gone off: sums fall short."""
        now = (self.world.now - self._born) * self.rate + self._offset
        if now > self._floor:
            self._floor = now
        return self._floor

    def world_time(self, when: float) -> float:
        """When this process's clock shows `when`."""
        return (when - self._offset) / self.rate + self._born

    # -- calls

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        if not self.alive:  # what was under way when it was killed begins nothing any more
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coro.close()
        return task

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        call = Call(0.0, callback, args, self, context)
        self._ready.append(call)
        if not self._scheduled:
            self._schedule()
        return call

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        call = Call(when, callback, args, self, context)
        if self.alive:
            self.world.due(max(self.world_time(when), self.world.now), self, call)
        return call

    def take(self, call: Call) -> None:
        """A timer has come due."""
        if not self.alive:
            return
        if self.stopped:
            self._late_timers.append(call)
            return
        if call._when > self._floor:
            self._floor = call._when
        self._ready.append(call)
        if not self._scheduled:
            self._schedule()

    def bring(self, callback: Callable[..., object], *args: Any) -> None:
        """The network brings something in."""
        if self.alive:
            self.came_in(Call(0.0, callback, args, self))

    def came_in(self, call: Call) -> None:
        """The same, of what is a call already."""
        if self.stopped:
            self._late_mail.append(call)
            return
        self._ready.append(call)
        if not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        if self.alive and not self.stopped:
            self._scheduled = True
            self.world.runnable(self)

    def round(self) -> None:
        ready = self._ready
        if not ready or self.stopped:
            self._scheduled = False
            return
        enter(self)
        try:
            if self._fuse is None:
                for _ in range(CALLS_A_ROUND):
                    ready.popleft().run()
                    if not ready:  # it is done, or was killed at a failpoint
                        break
            else:
                self._run_until_stopped()
        finally:
            enter(self.world)
            self._scheduled = False
        if ready:
            self._schedule()

    def _run_until_stopped(self) -> None:
        assert self._fuse is not None
        while self._ready and self._fuse > 0:
            self._fuse -= 1
            self._ready.popleft().run()
        if self._fuse <= 0:
            self._freeze()

    # -- what is done to it

    def stop_after(self, calls: int) -> None:
        """SIGSTOP, after that many more callbacks of what it is doing now."""
        if not self.alive or self.stopped:
            return
        if calls > 0 and self._ready:
            self._fuse = calls
        else:
            self._freeze()

    def _freeze(self) -> None:
        self._fuse = None
        self.stopped = True

    def resume(self) -> None:
        """SIGCONT: all that waited comes in, each kind in its order."""
        self._fuse = None
        if not self.stopped:
            return
        self.stopped = False
        mail, timers = self._late_mail, self._late_timers
        while mail or timers:
            both = bool(mail) and bool(timers)
            first = self.world.random.random() < 0.5 if both else bool(mail)
            call = (mail if first else timers).popleft()
            if not call._cancelled:
                self._floor = max(self._floor, call._when)
                self._ready.append(call)
        if self._ready and not self._scheduled:
            self._schedule()

    def kill(self) -> None:
        """SIGKILL: nothing of it runs again, and no cleanup of its code means anything."""
        if not self.alive:
            return
        self.alive = False
        begun = list(self._ready)  # a task that has not run a line yet hangs on its call alone
        self._ready.clear()
        self._late_mail.clear()
        self._late_timers.clear()
        self._close()
        begun.clear()
        # What killed it at a failpoint runs now, and is closed when it has come to a stop.
        self.world.call_soon(self._close)

    def _close(self) -> None:
        """Whoever killed it goes on where it was: at a failpoint that is this loop's own code, and
        what that begins in its last breath is still begun here, and so never runs."""
        before = running()
        enter(self)
        try:
            close_tasks(self)
        finally:
            enter(before)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.alive:
            super().call_exception_handler(context)


class ProcessClock:
    """`actors.ports.Clock` of one process: `skew_s` is how wrong its wall clock is, and may be
    changed while it runs."""

    def __init__(self, process: Process, skew_s: float = 0.0) -> None:
        self._process = process
        self.skew_s = skew_s

    def monotonic(self) -> float:
        return self._process.time()

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._process.world.now + self.skew_s)
