"""What the loops of a simulation share: the least of an asyncio loop that tasks can live on.

They have no sockets, no threads and no selector: everything that happens is a callback at a
time, so that a run is the same each time it is run.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import events
from collections.abc import Callable, Coroutine, Generator
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from actors.system.virtual import VirtualTime

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_EMPTY: Final = contextvars.Context()
"""Of calls that bring none: they are never inside one another."""

enter = events._set_running_loop
running = events._get_running_loop
"""The same, asked."""


class Call(asyncio.TimerHandle):
    """A callback to come: asyncio's own handle, without its debugging."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None = None,
    ) -> None:
        self._when = when
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = context if context is not None else _EMPTY
        self._cancelled = False  # the rest of a handle is for asyncio's own loops

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None  # type: ignore[assignment]

    def run(self) -> None:
        """Call it, unless it was cancelled; what it raises is the loop's to report."""
        if self._cancelled:
            return
        try:
            self._context.run(self._callback, *self._args)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self._loop.call_exception_handler({"message": "a callback raised", "exception": error})


def close_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Close the coroutines of a loop that will not run again, here and now: else the garbage
    collector runs their last lines, at a time of its own and perhaps in another run."""
    for task in sorted(asyncio.all_tasks(loop), key=_age):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        coroutine: Any = task.get_coro()
        try:
            coroutine.close()
        except (RuntimeError, ValueError):  # it ignores its end, or is what runs now
            continue


def _age(task: asyncio.Task[Any]) -> tuple[int, str]:
    return len(task.get_name()), task.get_name()


class SimulatedLoop(VirtualTime, asyncio.AbstractEventLoop):
    """Tasks and futures as on any loop; subclasses say what time is, and keep the calls."""

    random: Random

    def __init__(self, random: Random) -> None:
        self.random = random
        self.broken: list[BaseException | str] = []
        """What raised where nobody catches: no run with one of these is worth anything."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.broken.append(error if error is not None else str(context.get("message")))

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    get_debug = staticmethod(bool)
    """False. Each task and future asks, and this way it is no call of Python's."""

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False
