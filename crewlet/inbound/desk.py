"""What one running turn may ask of its node."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from actors.delivery import Ack
from crewlet.errors import AskRefused, TurnStopped
from crewlet.events import Trace
from crewlet.events.work_items import WorkItem
from crewlet.inbound.ids import work_key
from crewlet.inbound.running import Turns
from crewlet.turn import SeatView, Turn


class Asker(Struct, frozen=True, kw_only=True):
    """A turn that asks: how far its work has been handed on already, and by whom."""

    handle: str
    turn_id: str
    work_key: str
    depth: int
    chain: tuple[str, ...]
    trace: Trace
    conversation: str = ""
    work_item: WorkItem | None = None


class Asks(Protocol):
    """Where questions to colleagues go."""

    async def ask(self, asker: Asker, ordinal: int, handle: str, brief: str) -> str:
        """The id of the channel that the turn's `ordinal`-th question is asked on: asked once,
        however often the turn runs. AskRefused; StoreUnavailable or a BrokerError where it is
        not known, and then it may be asked again."""

    def colleagues(self, asker: Asker) -> Sequence[SeatView]:
        """Whom the turn may ask, the nearest first."""


class TurnDesk:
    """From the start of a turn to its end. `data` is the folder that the node answers on, `turns`
    know whether a person wants it to stop."""

    def __init__(
        self, asker: Asker, asks: Asks | None, turns: Turns, data: Path | None = None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.data = data
        self._asker = asker
        self._asks = asks
        self._turns = turns
        self._asked = 0
        self._over = False

    async def ask(self, handle: str, brief: str) -> Ack:
        """A refusal counts: the next question has the same number in every run of the turn."""
        number, self._asked = self._asked, self._asked + 1
        if self._over:
            raise AskRefused("the turn is over: ask before it ends")
        if self._asks is None:
            raise AskRefused("this node has nobody to ask: it runs without colleagues")
        channel = await self._asks.ask(self._asker, number, handle, brief)
        return Ack(answer=f"asked {handle} on channel {channel}; the answer will wake this seat")

    def colleagues(self) -> Sequence[SeatView]:
        return () if self._asks is None else self._asks.colleagues(self._asker)

    def checkpoint(self) -> None:
        """Called from any thread: it reads, and nothing else."""
        if by := self._turns.stopped_by(self._asker.turn_id):
            raise TurnStopped(f"{by} stopped this turn")

    async def stopping(self) -> None:
        await self._turns.stopping(self._asker.turn_id)

    def close(self) -> None:
        """The turn is over; what its handler left behind asks nothing more in its name."""
        self._over = True


def asker_of(turn: Turn, trace: Trace) -> Asker:
    return Asker(
        handle=turn.seat.handle,
        turn_id=turn.turn_id,
        work_key=work_key(event.id for event in turn.events),
        depth=turn.delegation_depth,
        chain=turn.delegation_chain,
        trace=trace,
        conversation=turn.conversation.conversation_identity,
        work_item=turn.work_item,
    )
