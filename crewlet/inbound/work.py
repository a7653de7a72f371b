"""A partition on its way to a turn, and the kind of step that it goes through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol, TypeAlias

from msgspec import Struct

from actors.delivery import Outcome, Partition, Partly
from crewlet.company import Seat
from crewlet.handlers import Handler
from crewlet.inbound.coalesce import Trigger


class AtWork(Struct, frozen=True):
    """A seat as the company has it now, who works it here (None: nobody), and for how long a
    turn of it may take."""

    seat: Seat
    handler: Handler | None
    timeout_s: float


class Brakes(Protocol):
    """Named holds over the inbox of a seat of this node. TimeoutError where the seat is silent."""

    async def hold(self, handle: str, name: str) -> bool:
        """Take nothing new until it is lifted. A seat that is not here has nothing to hold:
        whether it is."""

    async def lift(self, handle: str, name: str) -> bool:
        """The other way round."""


class Work:
    """What is left to be worked, in order, and what is done whatever becomes of the rest.
    `trigger` is what the turn is for, once the letters have become one."""

    def __init__(self, partition: Partition, at: AtWork) -> None:
        self.partition = partition
        self.seat = at.seat
        self.handler = at.handler
        self.timeout_s = at.timeout_s
        self.letters = partition.letters
        self.trigger: Trigger | None = None
        self._done: list[str] = []

    def finish(self, ids: Collection[str]) -> None:
        """These letters are done: their mail may go."""
        self._done += [letter.id for letter in self.letters if letter.id in ids]
        self.letters = tuple(letter for letter in self.letters if letter.id not in ids)

    def outcome(self, rest: Outcome) -> Outcome | Partly:
        """That of the whole partition, where the rest of it ended so."""
        return Partly(tuple(self._done), rest) if self._done and self.letters else rest


Step: TypeAlias = Callable[[Work], Awaitable[Outcome | None]]
"""One step of the way: it takes letters out, or ends the way with an outcome for what is left.
None: go on."""
