"""The lean turn of the seed runner: the ledger is asked, something is done, it is recorded.

Everything around it is real: the ledger, the fence, the outcomes. What the full dispatch does
besides - events, traces, followers - is left to `crewlet.testing.simulate`, which runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from actors.delivery import Ack, Defer, Delivery, Letter, Mailbox, Nak, Outcome, Partition, Partly
from actors.simulation.checkers.checker import CORRUPT
from actors.simulation.faults import Knobs
from actors.simulation.host import Host
from actors.simulation.site import Posting
from actors.tenure import Fenced
from crewlet.errors import StoreUnavailable
from crewlet.inbound.ledger import Ledger
from crewlet.testing.simulated.store import LinkedStore

RECORD_TRIES: Final = 30
RECORD_AGAIN_S: Final = 1.0

SeatOf = Callable[[Mailbox], str]


class Poison(Exception):
    """What a poisoned message does to its handler."""


class Temper:
    """How handlers behave: the seed's, until the calm."""

    def __init__(self, knobs: Knobs, seed: int) -> None:
        self.knobs = knobs
        self.chance = Random(f"turns {seed}")  # noqa: S311 - a simulation, not a secret
        self.calm = False

    def length_s(self) -> float:
        if self.calm:
            return 0.02
        if self.chance.random() < self.knobs.long_turn_chance:
            return self.chance.uniform(10.0, 40.0)
        return min(8.0, self.chance.expovariate(1.0) * self.knobs.turn_s)

    def outcome(self) -> Outcome:
        roll = 1.0 if self.calm else self.chance.random()
        if roll < self.knobs.nak_chance:
            return Nak("not this time")
        if roll < self.knobs.nak_chance + self.knobs.defer_chance:
            return Defer("not here", 0.5)
        return Ack()


def write(posting: Posting) -> bytes:
    """A message of the workload, as short as can be."""
    if posting.flavour == CORRUPT:
        return b"\xff"
    return f"{posting.msg}|{posting.key}|{posting.stamp!r}|{posting.flavour}".encode()


def read(delivery: Delivery) -> Letter:
    """Raises ValueError on one that was corrupted."""
    msg, key, stamp, flavour = delivery.body.decode().split("|")
    return Letter(delivery, msg, key, float(stamp), flavour)


class LeanTurn:
    """Of one seat in one process."""

    def __init__(
        self, host: Host, seat: str, ledger: Ledger, store: LinkedStore, temper: Temper,
        seat_of: SeatOf,
    ) -> None:  # fmt: skip
        self._host = host
        self._note = host.noter()
        self._seat = seat
        self._ledger = ledger
        self._store = store
        self._temper = temper
        self._seat_of = seat_of

    async def run(self, partition: Partition) -> Outcome | Partly:
        host = self._host
        asked, unread = host.wire.world.now, self._store.unread
        ids = [letter.id for letter in partition.letters]
        worked = await self._ledger.worked(self._seat, ids)
        for letter in partition.letters:
            if letter.id in worked:
                self._note("skip", seat=self._seat, msg=letter.id, seq=letter.delivery.position,
                          sent=letter.timestamp or 0.0)  # fmt: skip
        rest = tuple(letter for letter in partition.letters if letter.id not in worked)
        if not rest:
            return Ack()
        if host.point("before_turn"):
            await host.wire.process.create_future()
        self._started(partition, rest, asked, unread=self._store.unread > unread)
        outcome = await self._ended(partition, rest)
        return Partly(tuple(worked), outcome) if worked else outcome

    def _started(
        self, partition: Partition, letters: tuple[Letter, ...], asked: float, *, unread: bool
    ) -> None:
        note, fence = self._note, _fence(partition)
        note("turn_start", seat=self._seat, fence=fence, key=partition.key, pos=len(letters),
             sent=asked)  # fmt: skip
        for letter in letters:
            of = "unread" if unread else self._seat_of(letter.delivery.mailbox)
            note("turn_letter", seat=self._seat, msg=letter.id, seq=letter.delivery.position,
                 dc=letter.delivery.count or 0, sent=letter.timestamp or 0.0, code=of)  # fmt: skip

    async def _ended(self, partition: Partition, letters: tuple[Letter, ...]) -> Outcome:
        code = "cut"
        try:
            outcome = await self._work(partition, letters)
            code = type(outcome).__name__.lower()
        except Fenced:
            code = "fenced"
            raise
        except Poison as error:  # as the full dispatch has it: what it raises is its outcome
            code, outcome = "nak", Nak(f"the handler raised: {error}")
        finally:
            self._note("turn_end", seat=self._seat, fence=_fence(partition), code=code)
        return outcome

    async def _work(self, partition: Partition, letters: tuple[Letter, ...]) -> Outcome:
        await asyncio.sleep(self._temper.length_s())
        if any(letter.event == "poison" for letter in letters):
            raise Poison(letters[0].id)
        outcome = self._temper.outcome()
        if isinstance(outcome, Ack):
            if self._host.point("after_effect"):
                await self._host.wire.process.create_future()
            return await self._recorded(partition, letters)
        return outcome

    async def _recorded(self, partition: Partition, letters: tuple[Letter, ...]) -> Outcome:
        """As the full dispatch has it: unanswered is said again, undecided is no success."""
        host, ids = self._host, [letter.id for letter in letters]
        for _ in range(RECORD_TRIES):
            try:
                await self._ledger.record(
                    self._seat, ids, turn_id=ids[0], node=host.name, at=host.clock.now(),
                    fence=partition.fence,
                )  # fmt: skip
            except StoreUnavailable:
                await asyncio.sleep(RECORD_AGAIN_S)
                continue
            return Ack()
        return Defer("the ledger did not say whether it recorded the turn")


def _fence(partition: Partition) -> int:
    return partition.fence.revision if partition.fence else 0
