"""A loop whose time is virtual: it jumps to the next timer when nothing is ready."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

PATIENCE_S: Final = 5.0
"""Real seconds that virtual time waits for a thread before it goes on without it."""


MAX_ROUNDS: Final = 200_000
"""Rounds of the loop in one instant of virtual time before it is called a livelock."""


class Deadlock(RuntimeError):
    """The run can never end: nothing is ready, no timer is set and no thread works; or the work
    of one instant feeds itself."""


class VirtualTime:
    """A loop whose time is its own: no wall time passes while messages run, and what is a
    question of chance is decided by its `random`. `shuffle`: any ready actor may be next."""

    random: Random
    shuffle = False


class _JumpingSelector(selectors.BaseSelector):
    """Polls; where a real loop would sleep it moves the loop's time instead."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.loop: VirtualLoop

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Any:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = self._real.select(0)
        if events or timeout == 0:
            self.loop.count_round()
            return events
        if self.loop.threads_at_work:
            events = self._real.select(PATIENCE_S if timeout else None)
            if events:
                return events
        if timeout is not None:
            self.loop.jump()
            return events
        if len(self._real.get_map()) > 1:  # sockets besides the loop's own wake-up pipe
            return self._real.select(None)
        raise Deadlock(self.loop.deadlock_text())


class VirtualLoop(VirtualTime, asyncio.SelectorEventLoop):
    """An asyncio loop in virtual time: no wall time passes, the same run gives the same order.

    `random` is the run's one source of chance. Work in executor threads is real: time stands
    while a thread is at it.
    """

    def __init__(self, seed: int = 0) -> None:
        self._virtual_now = 0.0
        self._rounds = 0
        self.threads_at_work = 0
        self.random = Random(seed)  # noqa: S311 - a simulation, not a secret
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual_now

    def jump(self) -> None:
        """Move to the next timer. It is set exactly, not added up: sums of floats fall short."""
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        self._virtual_now = max(self._virtual_now, scheduled[0].when())
        # asyncio calls a timer due within this of now; far out floats are coarser than that
        self._clock_resolution = max(1e-9, 2 * math.ulp(self._virtual_now))
        self._rounds = 0

    def count_round(self) -> None:
        """A round in which no time passed. Work that feeds itself would never let it pass."""
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            self._rounds = 0
            raise Deadlock(f"time stands still at {self._virtual_now}: work feeds itself")

    def deadlock_text(self) -> str:
        waiting = sorted(task.get_name() for task in asyncio.all_tasks(self))
        return f"nothing is ready and no timer is set; tasks that wait: {', '.join(waiting)}"

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[Ts]], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self.threads_at_work += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, future: asyncio.Future[Any]) -> None:
        self.threads_at_work -= 1

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        self.threads_at_work += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self.threads_at_work -= 1


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]], *, seed: int = 0) -> T:
    """Run `main()` on a fresh virtual loop and return its result.

    Raises what it raises, or `Deadlock` when it could never end.
    """
    loop = VirtualLoop(seed)
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main())
    finally:
        try:
            _end_tasks(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _end_tasks(loop: VirtualLoop) -> None:
    """Cancel what is left, in the order of creation (the set of all tasks has none)."""
    tasks = sorted(
        asyncio.all_tasks(loop), key=lambda task: (len(task.get_name()), task.get_name())
    )
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
