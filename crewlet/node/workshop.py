"""What a seat is made of: its handler, its mailboxes, what is done with its mail.

Handlers are built with their company (crewlet.node.hands), everything else when the node takes the
seat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from actors.delivery import Ack, Mailbox, Outcome, Partition
from actors.ports import Consumed
from actors.seat import SeatSpec
from crewlet import topics
from crewlet.broker.port import CompanyBroker
from crewlet.company import Company
from crewlet.errors import NodeRefused, StoreUnavailable
from crewlet.events import Event
from crewlet.inbound.dispatch import Dispatch
from crewlet.inbound.letters import event_of, read, read_alone
from crewlet.inbound.outages import PROVIDER
from crewlet.inbound.services import Services
from crewlet.inbound.steps.holds import NO_HANDLER
from crewlet.inbound.work import AtWork
from crewlet.node.hands import Hands
from crewlet.node.pauses import Pauses

STORE_TRIES: Final = 20
STORE_AGAIN_S: Final = 0.5
"""A seat whose pause or whose runs cannot be read is not attached: they may hold it."""

T = TypeVar("T")

Reflect = Callable[[Event], Awaitable[None]]


class Workshop:
    """Makes seats of the company that `current` answers. `there` are mailboxes that exist;
    `forgotten` those of a broker that nobody but us used and that started anew: it has forgotten
    what was handed back to it, so that is handed back once more."""

    def __init__(
        self,
        current: Callable[[], Company],
        hands: Callable[[], Hands],
        services: Services,
        broker: CompanyBroker,
        pauses: Pauses,
        reflect: Reflect | None,
        forgotten: frozenset[Mailbox],
    ) -> None:
        self._current = current
        self._hands = hands
        self._services = services
        self._broker = broker
        self._pauses = pauses
        self._reflect = reflect
        self._forgotten = set(forgotten)

    async def prepare(self, handle: str) -> SeatSpec:
        """Everything before the mailboxes are attached: that they exist, and the holds that are
        taken before. StoreUnavailable where nobody can say whether it is paused or a run holds
        it. What was known of an outage was known of another stay of the seat here: the first turn
        is the probe."""
        self._services.outages.forget(handle)
        self._at_work(handle)  # of a seat that is no more nothing is made
        paused = await self._asked(handle)
        return SeatSpec(
            handle=handle,
            inbox=self.inbox(handle),
            control=self.control(handle),
            reflect=self.reflect(handle),
            reclaim=self._was_forgotten(handle),
            holds=tuple(self._holds(handle, paused)),
        )

    async def _asked(self, handle: str) -> Sequence[str]:
        """All that the broker is asked, at once: the seat's mail waits for the answers. Who paused
        it, as holds."""
        boxes = (topics.inbox_of(handle), topics.control_of(handle), topics.reflect_of(handle))
        try:
            async with asyncio.TaskGroup() as asked:
                asked.create_task(_patiently(lambda: self._services.runs.recover(handle)))
                paused = asked.create_task(_patiently(lambda: self._pauses.holds_of(handle)))
                for box in boxes:
                    asked.create_task(self._broker.ensure(box))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return paused.result()

    def _was_forgotten(self, handle: str) -> bool:
        """Once for each seat: from then on the broker has known no other life."""
        boxes = {topics.inbox_of(handle), topics.control_of(handle), topics.reflect_of(handle)}
        found, self._forgotten = boxes & self._forgotten, self._forgotten - boxes
        return bool(found)

    async def holds_of(self, handle: str) -> list[str]:
        """The holds that a seat's inbox is taken up with; a pause may have come since."""
        return self._holds(handle, await _patiently(lambda: self._pauses.holds_of(handle)))

    def _holds(self, handle: str, paused: Sequence[str]) -> list[str]:
        own = [NO_HANDLER] if self._at_work(handle).handler is None else []
        if self._services.outages.holding(handle) is not None:
            own.append(PROVIDER)
        if not paused:  # what a person stopped here may go on since it was elsewhere
            self._services.turns.go_on(handle)
        return [*own, *paused, *self._services.runs.holds_of(handle)]

    def inbox(self, handle: str) -> Consumed:
        last = self._at_work(handle)
        gone = AtWork(last.seat, None, last.timeout_s)
        dispatch = Dispatch(lambda: self._hands().at_work(handle) or gone, self._services)
        box = topics.inbox_of(handle)
        return Consumed(box, read, dispatch.run, lambda: self._current().batch_options)

    def control(self, handle: str) -> Consumed:
        return Consumed(topics.control_of(handle), read_alone, self._services.runs.control)

    def reflect(self, handle: str) -> Consumed:
        return Consumed(topics.reflect_of(handle), read_alone, self._reflected)

    def _at_work(self, handle: str) -> AtWork:
        at_work = self._hands().at_work(handle)
        if at_work is None:
            raise NodeRefused(f"there is no seat {handle!r} any more")
        return at_work

    async def _reflected(self, partition: Partition) -> Outcome:
        if self._reflect is not None:
            await self._reflect(event_of(partition.letters[0]))
        return Ack()


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """What the store says, asked until it answers; StoreUnavailable where it does not."""
    for last in range(STORE_TRIES):
        try:
            return await ask()
        except StoreUnavailable:
            if last == STORE_TRIES - 1:
                raise
            await asyncio.sleep(STORE_AGAIN_S)
    raise AssertionError("unreachable")
