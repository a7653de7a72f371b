"""What a handler is, and what a company file says about one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import structlog

from crewlet.turn import Outcome, Turn

log = structlog.get_logger()

OnOverdue: TypeAlias = Callable[[str, str], None]
"""Called with (turn_id, reason) when an outcome is decided while the body still runs: the
seat stays busy until it ends, and somebody should be told why."""


class Handler(Protocol):
    """The work of a seat.

    A call returns once the body has really ended, so that no two bodies of a seat overlap.
    It always returns an outcome; nothing but `asyncio.CancelledError` comes out of it.
    """

    async def __call__(self, turn: Turn) -> Outcome: ...


class HandlerSpec(Protocol):
    """How a company names a handler: `python` ('module:function') or `command` (an argv list).

    `timeout_s` bounds one turn; 0 is no bound.
    """

    @property
    def python(self) -> str: ...

    @property
    def command(self) -> tuple[str, ...]: ...

    @property
    def timeout_s(self) -> float: ...


def ignore_overdue(turn_id: str, reason: str) -> None:
    """The `OnOverdue` of those who do not want to know."""


def tell_overdue(on_overdue: OnOverdue, turn: Turn, reason: str) -> None:
    """Tell it, and log it. A listener that raises is logged and changes nothing."""
    log.warning("handler_overdue", turn_id=turn.turn_id, seat=turn.seat.handle, reason=reason)
    try:
        on_overdue(turn.turn_id, reason)
    except Exception:
        log.exception("overdue_listener_failed", turn_id=turn.turn_id)


def bound(timeout_s: float) -> float | None:
    """A timeout as asyncio takes it: None is no bound."""
    return timeout_s if timeout_s > 0 else None


def timeout_reason(timeout_s: float) -> str:
    return f"timeout after {timeout_s:g} s"
