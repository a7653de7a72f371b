"""Bodies whose turn was cancelled and that did not end: a coroutine that ignores its
cancellation, a thread. They are the reason why a seat can't start its next turn yet."""

from __future__ import annotations

import asyncio
import ctypes
from typing import Any, Final

import structlog

from crewlet.handlers.handler import OnOverdue, tell_overdue
from crewlet.turn import Turn

log = structlog.get_logger()

GRACE_S: Final = 1.0
"""How long a cancelled body may take before the turn that waits for it says so."""


class Strays:
    """One for all handlers of a node, so that a seat's next handler knows of them too."""

    def __init__(self) -> None:
        self._bodies: dict[asyncio.Future[Any], Turn] = {}

    def add(self, turn: Turn, body: asyncio.Future[Any]) -> None:
        """The body has been cancelled, and nobody awaits it any more."""
        self._bodies[body] = turn
        body.add_done_callback(self._ended)

    async def ended(self, turn: Turn, on_overdue: OnOverdue) -> None:
        """Wait until no stray of the turn's seat runs. After a second, `on_overdue` is told."""
        while strays := self._of(turn.seat.handle):
            await asyncio.wait(strays, timeout=GRACE_S)
            for body in strays:
                if not body.done():
                    before = self._bodies[body].turn_id
                    reason = f"waits for the body of turn {before}, which was cancelled"
                    tell_overdue(on_overdue, turn, f"{reason} and still runs")
                    await asyncio.wait({body})
            await asyncio.sleep(0)  # let the callbacks take them off

    async def let_go(self, within_s: float = GRACE_S) -> tuple[str, ...]:
        """At the end of a node: wait for all of them, then disown those that still run.

        Returns the turn ids of the disowned. `asyncio.run` waits for every task that it knows,
        so a coroutine that never ends would keep the process alive; it does not know these.
        """
        if self._bodies:
            await asyncio.wait(set(self._bodies), timeout=within_s)
            await asyncio.sleep(0)
        left = dict(self._bodies)
        self._bodies.clear()
        for body, turn in left.items():
            log.warning("handler_did_not_stop", turn_id=turn.turn_id, seat=turn.seat.handle)
            _disown(body)
        return tuple(turn.turn_id for turn in left.values())

    def _of(self, handle: str) -> set[asyncio.Future[Any]]:
        return {body for body, turn in self._bodies.items() if turn.seat.handle == handle}

    def _ended(self, body: asyncio.Future[Any]) -> None:
        self._bodies.pop(body, None)


def _disown(body: asyncio.Future[Any]) -> None:
    if isinstance(body, asyncio.Task):
        asyncio.tasks._unregister_task(body)
        body._log_destroy_pending = False  # type: ignore[attr-defined]
        # Never closed: a body that swallows GeneratorExit as well would spin at the very end.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(body.get_coro()))
