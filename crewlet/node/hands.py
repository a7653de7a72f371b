"""Who works a company's seats on this node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import structlog

from crewlet.company import Company, HandlerSpec, Seat
from crewlet.handlers import Handler, Strays, build_handler, wrap
from crewlet.inbound.running import Turns
from crewlet.inbound.work import AtWork

TURN_TIMEOUT_S: Final = 1800.0
"""Of a turn that an embedder gives as a callable: the ack window of a mailbox."""

log = structlog.get_logger(__name__)


class Hands:
    """Built once for a company: a broken handler refuses it as a whole."""

    def __init__(
        self,
        company: Company,
        turn: Callable[..., Any] | None,
        turns: Turns,
        strays: Strays,
        folder: Path | None,
    ) -> None:
        self._company = company
        self._turn = turn
        self._turns = turns
        self._strays = strays
        self._folder = folder
        self._agents = {seat.handle: seat for seat in company.agents()}
        self._handlers = {handle: self._built(seat) for handle, seat in self._agents.items()}

    def at_work(self, handle: str) -> AtWork | None:
        """Who works the seat, and for how long a turn of it may take; None where the company has
        no such agent (any more)."""
        seat = self._agents.get(handle)
        if seat is None:
            return None
        spec = self._spec_of(seat)
        timeout_s = TURN_TIMEOUT_S if spec is None else spec.timeout_s
        return AtWork(seat, self._handlers[handle], timeout_s)

    def _built(self, seat: Seat) -> Handler | None:
        """ConfigError if it is broken."""
        spec, overdue = self._spec_of(seat), self._turns.overdue
        if spec is None and self._turn is not None:
            return wrap(self._turn, TURN_TIMEOUT_S, on_overdue=overdue, strays=self._strays)
        if spec is None:
            log.warning("seat_without_handler", seat=seat.handle)
            return None
        return build_handler(
            spec,
            on_overdue=overdue,
            folder=self._folder,
            secrets=self._company.secrets(),
            strays=self._strays,
        )

    def _spec_of(self, seat: Seat) -> HandlerSpec | None:
        """The seat's own, else the embedder's callable (None here), else the company's."""
        if seat.handler is None and self._turn is not None:
            return None
        return self._company.handler_of(seat)
