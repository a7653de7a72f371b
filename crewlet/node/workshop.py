"""What a seat is made of: its handler, its mailboxes, what is done with its mail.

The handlers are built when the node starts - a broken one refuses the start - and everything else
when the node takes the seat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import structlog

from actors.delivery import Ack, Mailbox, Outcome, Partition
from actors.ports import Consumed
from actors.seat import SeatSpec
from crewlet import topics
from crewlet.broker.port import CompanyBroker
from crewlet.company import Company, HandlerSpec, Seat
from crewlet.errors import NodeRefused, StoreUnavailable
from crewlet.events import Event
from crewlet.handlers import Handler, Strays, build_handler, wrap
from crewlet.inbound.dispatch import Dispatch, Services
from crewlet.inbound.letters import event_of, read, read_alone
from crewlet.inbound.running import Turns
from crewlet.node.pauses import Pauses
from crewlet.node.seats import NO_HANDLER

TURN_TIMEOUT_S: Final = 1800.0
"""Of a turn that an embedder gives as a callable: the ack window of a mailbox."""

PAUSES_TRIES: Final = 20
PAUSES_AGAIN_S: Final = 0.5
"""A seat whose pause cannot be read is not attached: it may be paused."""

Reflect = Callable[[Event], Awaitable[None]]

log = structlog.get_logger(__name__)


class Hands:
    """Who works a company's seats on this node: built once, refused as a whole."""

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
        self._handlers = {seat.handle: self._built(seat) for seat in company.agents()}

    def of(self, seat: Seat) -> tuple[Handler | None, float]:
        """The seat's handler, None where it has none, and how long a turn of it may take."""
        spec = self._spec_of(seat)
        return self._handlers[seat.handle], TURN_TIMEOUT_S if spec is None else spec.timeout_s

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
            secrets=self._company.integrations.secrets(),
            strays=self._strays,
        )

    def _spec_of(self, seat: Seat) -> HandlerSpec | None:
        """The seat's own, else the embedder's callable (None here), else the company's."""
        if seat.handler is None and self._turn is not None:
            return None
        return self._company.handler_of(seat)


class Workshop:
    """Makes seats of the company that `current` answers. `there` are mailboxes that exist;
    `forgotten` those of a broker that nobody but us used and that started anew: it has forgotten
    what was handed back to it, so that is handed back once more."""

    def __init__(
        self,
        current: Callable[[], Company],
        hands: Hands,
        services: Services,
        broker: CompanyBroker,
        pauses: Pauses,
        reflect: Reflect | None,
        there: frozenset[Mailbox],
        forgotten: frozenset[Mailbox],
    ) -> None:
        self._current = current
        self._hands = hands
        self._services = services
        self._broker = broker
        self._pauses = pauses
        self._reflect = reflect
        self._there = set(there)
        self._forgotten = set(forgotten)

    async def prepare(self, handle: str) -> SeatSpec:
        """Everything before the mailboxes are attached: that they exist, and the holds that are
        taken before. StoreUnavailable where nobody can say whether it is paused."""
        for mailbox in (topics.control_of(handle), topics.reflect_of(handle)):
            if mailbox not in self._there:
                await self._broker.ensure(mailbox)
                self._there.add(mailbox)
        holds = tuple(await self.holds_of(handle))
        return SeatSpec(
            handle=handle,
            inbox=self.inbox(handle),
            control=self.control(handle),
            reflect=self.reflect(handle),
            reclaim=self._was_forgotten(handle),
            holds=holds,
        )

    def _was_forgotten(self, handle: str) -> bool:
        """Once for each seat: from then on the broker has known no other life."""
        boxes = {topics.inbox_of(handle), topics.control_of(handle), topics.reflect_of(handle)}
        found, self._forgotten = boxes & self._forgotten, self._forgotten - boxes
        return bool(found)

    async def holds_of(self, handle: str) -> list[str]:
        """The holds that a seat's inbox is taken up with; a pause may have come since."""
        handler, _ = self._hands.of(self._seat(handle))
        own = [NO_HANDLER] if handler is None else []
        for last in range(PAUSES_TRIES):
            try:
                return [*own, *await self._pauses.holds_of(handle)]
            except StoreUnavailable:
                if last == PAUSES_TRIES - 1:
                    raise
                await asyncio.sleep(PAUSES_AGAIN_S)
        raise AssertionError("unreachable")

    def inbox(self, handle: str) -> Consumed:
        seat = self._seat(handle)
        handler, timeout_s = self._hands.of(seat)
        run = _nobody if handler is None else Dispatch(seat, handler, timeout_s, self._services).run
        return Consumed(topics.inbox_of(handle), read, run, lambda: self._current().batch_options)

    def control(self, handle: str) -> Consumed:
        return Consumed(topics.control_of(handle), read_alone, _acknowledge)

    def reflect(self, handle: str) -> Consumed:
        return Consumed(topics.reflect_of(handle), read_alone, self._reflected)

    def _seat(self, handle: str) -> Seat:
        seat = self._current().seat(handle)
        if seat is None:
            raise NodeRefused(f"there is no seat {handle!r} any more")
        return seat

    async def _reflected(self, partition: Partition) -> Outcome:
        if self._reflect is not None:
            await self._reflect(event_of(partition.letters[0]))
        return Ack()


async def _acknowledge(partition: Partition) -> Outcome:
    """Control has nobody to talk to yet: long runs bring it its work."""
    return Ack()


async def _nobody(partition: Partition) -> Outcome:
    """Never called: a seat without a handler is held before its mailbox is attached."""
    raise NodeRefused("the seat has no handler")
