"""A Python callable as a handler: async on the loop, or sync in a thread of its own.

The outcome is decided at the timeout; the call returns when the body has ended. A coroutine is
cancelled at its timeout and may take its time, or ignore it; a thread cannot be stopped at all.
Either way the seat is busy until then.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

import structlog

from crewlet.errors import TurnStopped
from crewlet.handlers.handler import (
    OnOverdue,
    allowed_s,
    bound,
    ignore_overdue,
    tell_overdue,
)
from crewlet.handlers.outcomes import ended_with, nak, outcome_of, raised, timed_out
from crewlet.handlers.strays import Strays
from crewlet.handlers.threads import run_in_thread
from crewlet.turn import Nak, Outcome, Turn

log = structlog.get_logger()


class CallableHandler:
    """Runs one body per call. See `crewlet.handlers.Handler` for what a call promises.

    When the call itself is cancelled, the body is cancelled (a thread is left alone) and the
    cancellation goes on at once. A body that does not end then is a stray: it is logged when it
    ends, and the next turn of its seat waits for it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        timeout_s: float,
        on_overdue: OnOverdue = ignore_overdue,
        strays: Strays | None = None,
    ) -> None:
        self._function = function
        self.available: object = getattr(function, "available", None)
        """The function's own probe (crewlet.handlers.handler.probe_of), where it has one."""
        self.provider: object = getattr(function, "provider", "")
        """What the function calls that which it needs (handler.provider_of), where it does."""
        self._timeout_s = timeout_s
        self._on_overdue = on_overdue
        self._strays = strays if strays is not None else Strays()

    async def __call__(self, turn: Turn) -> Outcome:
        await self._strays.ended(turn, self._on_overdue)
        body = self._start(turn)
        try:
            return await self._supervise(turn, body)
        except asyncio.CancelledError:
            self._abandon(turn, body)
            raise

    def _start(self, turn: Turn) -> asyncio.Future[Any]:
        if is_async(self._function):
            return asyncio.create_task(_awaited(self._function, turn), name=f"turn {turn.turn_id}")
        return run_in_thread(self._function, turn, f"turn {turn.turn_id}")

    async def _supervise(self, turn: Turn, body: asyncio.Future[Any]) -> Outcome:
        timeout_s = allowed_s(turn, self._timeout_s)
        await asyncio.wait({body}, timeout=bound(timeout_s))
        if body.done():
            return _outcome(turn, body)
        decided = timed_out(timeout_s)
        _cancel(body)
        tell_overdue(self._on_overdue, turn, decided.reason)
        await asyncio.wait({body})
        _log_late(turn, body, decided)
        return decided

    def _abandon(self, turn: Turn, body: asyncio.Future[Any]) -> None:
        if not body.done():
            _cancel(body)
            self._strays.add(turn, body)
        body.add_done_callback(functools.partial(_log_abandoned, turn))


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call gives a coroutine: a function, a partial, a method or an object."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(getattr(type(function), "__call__", None))  # noqa: B004


async def _awaited(function: Callable[..., Any], turn: Turn) -> Any:
    try:
        return await function(turn)
    except SystemExit as error:  # asyncio would take the whole node down with it
        return raised(error)


def _cancel(body: asyncio.Future[Any]) -> None:
    if isinstance(body, asyncio.Task):  # a thread's future is its only witness: keep it
        body.cancel()


def _outcome(turn: Turn, body: asyncio.Future[Any]) -> Outcome:
    if body.cancelled():
        return nak("CancelledError: the handler cancelled itself")
    error = body.exception()
    if isinstance(error, TurnStopped):
        raise error
    if error is not None:
        log.warning("handler_raised", turn_id=turn.turn_id, seat=turn.seat.handle, exc_info=error)
        return ended_with(error)
    value = body.result()
    if inspect.iscoroutine(value):
        value.close()
        return nak("the handler returned a coroutine: declare it with `async def`")
    return outcome_of(value)


def _log_late(turn: Turn, body: asyncio.Future[Any], decided: Nak) -> None:
    log.warning(
        "handler_ended_late",
        turn_id=turn.turn_id,
        seat=turn.seat.handle,
        decided=decided.reason,
        ignored=_how_it_ended(body),
    )


def _log_abandoned(turn: Turn, body: asyncio.Future[Any]) -> None:
    log.info(
        "handler_ended_after_cancel",
        turn_id=turn.turn_id,
        seat=turn.seat.handle,
        ignored=_how_it_ended(body),
    )


def _how_it_ended(body: asyncio.Future[Any]) -> str:
    if body.cancelled():
        return "cancelled"
    error = body.exception()
    if error is not None:
        return raised(error).reason
    value = body.result()
    if inspect.iscoroutine(value):
        value.close()
    return type(value).__name__
