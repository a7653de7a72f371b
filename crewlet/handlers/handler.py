"""What a handler is, and what a company file says about one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

import structlog

from crewlet.company.endpoint import Endpoint
from crewlet.turn import Outcome, Turn, Unavailable

log = structlog.get_logger()

OnOverdue: TypeAlias = Callable[[str, str], None]
"""Called with (turn_id, reason) when an outcome is decided while the body still runs: the
seat stays busy until it ends, and somebody should be told why."""


class Handler(Protocol):
    """The work of a seat.

    A call returns once the body has really ended, so that no two bodies of a seat overlap.
    It always returns an outcome; nothing comes out of it but `asyncio.CancelledError`, and
    `TurnStopped` where a person asked the turn to stop.

    It may have a probe beside it, `async def available(self) -> Unavailable | None`: whether what
    it needs is there, asked while its seat is held because it was not. It should cost little.

    It may say `provider: str`, the name of what it needs: where handlers of several seats have the
    same, one that works shows that it is there, and a message that fails all the same is to blame.
    """

    async def __call__(self, turn: Turn) -> Outcome: ...


Probe: TypeAlias = Callable[[], Awaitable[Unavailable | None]]
"""None: it is there, as far as can be seen without a turn."""


def probe_of(handler: Handler) -> Probe | None:
    """The handler's probe; None where it has none."""
    probe = getattr(handler, "available", None)
    return probe if callable(probe) else None


def provider_of(handler: Handler) -> str:
    """What the handler calls that which it needs; empty where it does not say."""
    name = getattr(handler, "provider", "")
    return name if isinstance(name, str) else ""


class HandlerSpec(Protocol):
    """How a company names a handler: `python` ('module:function'), `command` (an argv list) or
    `openai` (an endpoint).

    `timeout_s` bounds one turn; 0 is no bound.
    """

    @property
    def python(self) -> str: ...

    @property
    def command(self) -> tuple[str, ...]: ...

    @property
    def openai(self) -> Endpoint | None: ...

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


def allowed_s(turn: Turn, timeout_s: float) -> float:
    """The handler's timeout, or the turn's where it is shorter; 0 where neither has one."""
    return min((one for one in (timeout_s, turn.timeout_s) if one > 0), default=0.0)


def bound(timeout_s: float) -> float | None:
    """A timeout as asyncio takes it: None is no bound."""
    return timeout_s if timeout_s > 0 else None
