"""The broker as one process of a simulation has it: the port, over a wire that may lose things.

What is done at the broker is done by `Office`, the broker's own client of that process, on the
world's loop; what took effect is written into the history there and then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Container, Sequence
from functools import partial
from typing import Any, Final

from actors.delivery import Dead, Delivery, HandBack, Mailbox, Verdict
from actors.ports import (
    PUBLISH_S,
    Attachment,
    Broker,
    MailboxState,
    NotLive,
    Receipt,
    Unavailable,
)
from actors.simulation.history import History
from actors.simulation.hold import Hold, give_up, kind_of, late, mine, raise_in, stranger
from actors.simulation.remembered import Remembered
from actors.simulation.wire import Wire

RECALL_S: Final = 3.0
"""A fetch that is recalled ends within this, whether or not the broker answers."""

OURS_S: Final = 10.0
"""After a longer outage a mailbox may have another owner: what is out is not touched then."""

GRACE_S: Final = 2.0
"""How much longer than its wait a fetch is believed in."""

UNREPAIRED: Final = "unrepaired"
"""The code of a note: a process was connected again, too late to put right what was lost."""

AGAIN: Final = "again"
"""The code of what a client says again after its line was broken."""

SizeOf = Callable[[Mailbox], int]
"""How much mail it holds, handed out or not."""

Unheard = Callable[[Mailbox, Sequence[int]], None]
"""Tells the office what never came to the process that it is the client of."""

SeatOf = Callable[[Mailbox], str]
"""The seat whose inbox it is; empty for every other mailbox, which the history leaves out."""

Point = Callable[[str], bool]
"""Called at each edge by its name; True: the process was killed right there."""


def _never(name: str) -> bool:
    return False


class LinkedBroker:
    """`actors.ports.Broker` of one process. `office` is its client at the broker's end."""

    def __init__(
        self,
        wire: Wire,
        office: Broker,
        history: History,
        seat_of: SeatOf,
        size_of: SizeOf,
        unheard: Unheard,
        point: Point = _never,
    ) -> None:
        self._point = point
        self._unheard = unheard
        self._size_of = size_of
        self._wire = wire
        self._office = office
        self._history = history
        self._seat_of = seat_of
        self._node, _, inc = wire.process.name.partition("#")
        self._inc = int(inc or 0)
        self._batches = 0
        self._holds: dict[int, Hold] = {}
        self._served: dict[int, Hold] = {}
        self._known: dict[Mailbox, Remembered] = {}

    # -- asked and answered ---------------------------------------------------------------

    async def ensure(self, mailbox: Mailbox) -> bool:
        return await self._wire.ask(partial(self._office.ensure, mailbox), late)

    async def attach(self, mailbox: Mailbox, epoch: int) -> Hold:
        await self._edge("before_attach")
        real = await self._wire.ask(partial(self._office.attach, mailbox, epoch), late)
        hold = Hold(mailbox, epoch, real)
        self._holds[id(hold)] = hold
        await self._edge("after_attach")
        return hold

    async def reclaim(
        self, mailbox: Mailbox, keep: Container[int] = (), only: Collection[int] | None = None
    ) -> int:
        async def serve() -> int:
            count = await self._office.reclaim(mailbox, keep, only)
            self._add("reclaim", mailbox, pos=count, code="strays" if only is not None else "all")
            return count

        await self._edge("before_reclaim")
        count = await self._wire.ask(serve, late)
        await self._edge("after_reclaim")
        return count

    async def outstanding(self, mailbox: Mailbox) -> frozenset[int]:
        return await self._wire.ask(partial(self._office.outstanding, mailbox), late)

    async def sweep(self, mailbox: Mailbox) -> Sequence[Delivery]:
        return await self._wire.ask(partial(self._office.sweep, mailbox), late)

    async def list(self, pattern: str) -> Sequence[MailboxState]:
        return await self._wire.ask(partial(self._office.list, pattern), late)

    async def delete(self, mailbox: Mailbox) -> bool:
        return await self._wire.ask(partial(self._office.delete, mailbox), late)

    async def publish(
        self, topic: str, body: bytes, *, message_id: str, within_s: float = PUBLISH_S
    ) -> Receipt:
        serve = partial(self._office.publish, topic, body, message_id=message_id)
        return await self._wire.ask(serve, late, within_s)

    # -- fetches --------------------------------------------------------------------------

    async def fetch(self, attachment: Attachment, most: int, wait_s: float) -> Sequence[Delivery]:
        """The pull itself is kept alive: what a broken line lost of it is asked for again."""
        hold = mine(attachment)
        if hold.over:
            raise NotLive(f"the attachment to {hold.mailbox} was released")
        if hold.answer is not None:
            raise RuntimeError(f"a fetch on {hold.mailbox} is outstanding")
        process = self._wire.process
        hold.answer = answer = process.create_future()
        hold.wanted, hold.until = most, process.time() + wait_s
        timer = process.call_later(wait_s + GRACE_S, give_up, answer)
        self._pull(hold)
        try:
            given: Sequence[Delivery] = await answer
        finally:
            timer.cancel()
            hold.answer = None
        if given:
            self._remembered(hold.mailbox).took(given)
            await self._edge("after_fetch")
        return given

    def _remembered(self, mailbox: Mailbox) -> Remembered:
        known = self._known.get(mailbox)
        if known is None:
            known = self._known[mailbox] = Remembered()
        return known

    def _pull(self, hold: Hold) -> None:
        assert hold.answer is not None
        hold.fetches += 1
        left_s = max(0.0, hold.until - self._wire.process.time())
        repair, hold.broken = hold.broken, False
        pull = partial(self._serve_pull, hold, hold.fetches, hold.answer, left_s, repair)
        self._wire.send(pull)

    def _serve_pull(
        self, hold: Hold, number: int, answer: asyncio.Future[Any], wait_s: float, repair: bool
    ) -> None:
        if hold.over or hold.fetches != number:
            return
        if hold.serving is not None:  # of a connection that is no more
            hold.serving.cancel()
        work = self._pulled(hold, answer, wait_s, repair)
        hold.serving = self._wire.world.create_task(work)
        self._served[id(hold)] = hold

    async def _pulled(
        self, hold: Hold, answer: asyncio.Future[Any], wait_s: float, repair: bool
    ) -> None:
        try:
            if repair:
                await self.repair(hold)
            given = await self._office.fetch(hold.real, hold.wanted, wait_s)
        except asyncio.CancelledError:
            return
        except Exception as error:
            self._wire.back(raise_in, answer, error)
            return
        self._handed_out(hold, given)
        lost = partial(self._lose, hold, given)
        self._wire.back(self._landed, hold, answer, given, lost=lost)

    def _handed_out(self, hold: Hold, given: Sequence[Delivery]) -> None:
        if seat := self._seat_of(hold.mailbox):
            for one in given:
                self._history.add(
                    "deliver", node=self._node, inc=self._inc, seat=seat, fence=hold.epoch,
                    msg=one.message_id, seq=one.position, dc=one.count or 0,
                    pos=hold.fetches,
                )  # fmt: skip

    def _landed(self, hold: Hold, answer: asyncio.Future[Any], given: Sequence[Delivery]) -> None:
        """In the process. What comes for a fetch that is over is nobody's here."""
        if answer.done():
            hold.broken = hold.broken or bool(given)
            self._lose(hold, given)
            return
        for one in given:
            self._add("got", hold.mailbox, seq=one.position, dc=one.count or 0)
        answer.set_result(given)

    def _lose(self, hold: Hold, given: Sequence[Delivery]) -> None:
        """The office stands at the broker's end; a real client is here, and never had this."""
        if given:
            self._unheard(hold.mailbox, [one.position for one in given])

    async def recall(self, attachment: Attachment) -> None:
        """The outstanding fetch ends: with what the broker had sent, or empty where it does
        not answer in time."""
        hold = mine(attachment)
        answer = hold.answer
        if answer is None:
            return
        recall = partial(self._office.recall, hold.real)
        try:
            await self._wire.ask(recall, late, RECALL_S)
        except Unavailable:
            if hold.answer is not answer:  # it has ended meanwhile, and another may be under way
                return
            hold.fetches += 1
            hold.broken = True
            if not answer.done():
                answer.set_result([])

    async def release(self, attachment: Attachment) -> None:
        hold = mine(attachment)
        if hold.over:
            return
        await self._edge("before_release")
        await self._wire.ask(partial(self._released, hold), late)
        self._forget(hold)
        await self._edge("after_release")

    async def _released(self, hold: Hold) -> None:
        await self._office.release(hold.real)
        self._add("detach", hold.mailbox, pos=self._size_of(hold.mailbox))
        if hold.broken:  # as the real client does it: what was lost before is not looked for
            self._add("note", hold.mailbox, code=UNREPAIRED)

    async def abandon(self, attachment: Attachment) -> None:
        """Nobody is asked: the broker hears of it if it can."""
        hold = mine(attachment)
        if not hold.over:
            self._forget(hold)
            self._known.pop(hold.mailbox, None)
            self._wire.send(partial(self._serve_abandon, hold))

    def _serve_abandon(self, hold: Hold) -> None:
        self._wire.world.create_task(self._abandoned(hold))

    async def _abandoned(self, hold: Hold) -> None:
        await self._office.abandon(hold.real)

    def _forget(self, hold: Hold) -> None:
        hold.over = True
        self._holds.pop(id(hold), None)
        if hold.answer is not None and not hold.answer.done():
            hold.answer.set_result([])

    # -- verdicts -------------------------------------------------------------------------

    async def settle(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        if any(isinstance(verdict, HandBack) for _, verdict in verdicts):
            await self._edge("mid_defer")
        await self._wire.ask(partial(self._settled, verdicts), late)
        self._told(verdicts)
        if any(isinstance(verdict, Dead) for _, verdict in verdicts):
            await self._edge("after_dlq")

    def _told(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        now = self._wire.world.now
        for one, verdict in verdicts:
            self._remembered(one.mailbox).told(one, verdict, now)

    def say(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        """Written, and not answered: what a cut takes is not said again."""
        self._told(verdicts)
        if not self._point("before_ack"):
            self._wire.send(partial(self._serve_said, verdicts))

    def _serve_said(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        world, line = self._wire.world, self._wire.line
        if line.ack_delay_s:
            after_s = line.random.random() * line.ack_delay_s
            line.said_until = max(line.said_until, world.now + after_s)
            world.call_later(after_s, lambda: world.create_task(self._said(verdicts)))
        else:
            world.create_task(self._said(verdicts))

    async def _said(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        """What is lost is lost: nobody waits for an acknowledgement."""
        with contextlib.suppress(Unavailable, NotLive):
            await self._settled(verdicts)

    async def _settled(self, verdicts: Sequence[tuple[Delivery, Verdict]], code: str = "") -> None:
        await self._office.settle(verdicts)
        self._batches += 1
        for one, verdict in verdicts:
            if seat := self._seat_of(one.mailbox):
                kind, delay_s = kind_of(verdict)
                self._history.add(
                    kind, node=self._node, inc=self._inc, seat=seat, msg=one.message_id,
                    seq=one.position, dc=one.count or 0, sent=delay_s, code=code,
                    pos=self._batches,
                )  # fmt: skip

    # -- the line -------------------------------------------------------------------------

    def line_broke(self) -> None:
        """At the broker's end: the connection is gone. Fetches end there, unanswered."""
        for hold in self._served.values():  # those that were let go of unheard among them
            if hold.serving is not None:
                hold.serving.cancel()
        self._served.clear()

    def line_mended(self, since: float) -> None:
        """In the process: it is connected again, after an outage that began at `since`. Pulls are
        made anew; before that, what was lost on the way is put right."""
        ours = self._wire.world.now - since < OURS_S
        if not ours:
            self._history.add("note", node=self._node, inc=self._inc, code=UNREPAIRED)
        for hold in list(self._holds.values()):
            hold.broken = hold.broken or ours
            if hold.answer is not None and not hold.answer.done():
                self._pull(hold)

    async def repair(self, hold: Hold) -> None:
        """At the broker's end: say again of everything that is out what was said last, and hand
        back what never arrived."""
        out = await self._office.outstanding(hold.mailbox)
        if hold.over or not out:
            return
        known = self._remembered(hold.mailbox)
        verdicts = [
            (known.delivery(position) or stranger(hold.mailbox, position), verdict)
            for position, verdict in known.words(out, self._wire.world.now)
        ]
        if verdicts:
            await self._settled(verdicts, AGAIN)

    async def _edge(self, name: str) -> None:
        """A named moment at which the process may be killed: then nothing follows it."""
        if self._point(name):
            await self._wire.process.create_future()

    def _add(self, kind: str, mailbox: Mailbox, **fields: object) -> None:
        if seat := self._seat_of(mailbox):
            self._history.add(kind, node=self._node, inc=self._inc, seat=seat, **fields)
