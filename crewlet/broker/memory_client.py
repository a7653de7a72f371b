"""One node's client of the twin: the port, on the loop, with its own life."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Iterable, Sequence

from actors.delivery import Dead, Delivery, Done, HandBack, Mailbox, Retry, Verdict
from actors.ports import (
    PUBLISH_S,
    Attachment,
    MailboxState,
    NotLive,
    Receipt,
    Unavailable,
)
from crewlet.broker.memory_attachment import MemoryAttachment
from crewlet.broker.memory_broadcast import MemorySubscription
from crewlet.broker.memory_questions import MemoryServed
from crewlet.broker.memory_server import MemoryServer
from crewlet.broker.memory_store import MemoryStore
from crewlet.broker.peek import MOST
from crewlet.broker.port import Answer, DeadLetter, Listen, Waiting
from crewlet.coordination.store import Store


class MemoryClient:
    """`crewlet.broker.port.CompanyBroker` over a MemoryServer."""

    def __init__(self, broker: MemoryServer, node_id: str) -> None:
        self.node_id = node_id
        self._broker = broker
        self._live = False
        self._attachments: dict[int, MemoryAttachment] = {}
        self._out: dict[Mailbox, set[int]] = {}
        self._lives: dict[Mailbox, int] = {}
        self._subscriptions: list[MemorySubscription] = []
        self._served: list[MemoryServed] = []
        self._asking: dict[asyncio.Future[None], None] = {}
        self._store = MemoryStore(broker.shelves, lambda: self.connected)

    async def start(self) -> None:
        """Become live; Unavailable while the broker is down. Idempotent."""
        if self._broker.down:
            raise Unavailable("the broker does not answer")
        self._live = True

    async def stop(self) -> None:
        """Leave in order: what was on its way to a fetch goes back, what a fetch brought stays
        held. Idempotent."""
        if self._live and not self._broker.down:
            for attachment in self._attachments.values():
                attachment.release()
        self.crash()

    def crash(self) -> None:
        """The node dies: all that it was handed stays held, until the ack window ends or
        somebody reclaims it."""
        self._live = False
        for subscription in self._subscriptions:
            subscription.end()
        for attachment in self._attachments.values():
            attachment.abandon()
        for served in self._served:
            served.end()
        self._store.end()
        for asking in self._asking:
            asking.set_result(None)
        self._served.clear()
        self._asking.clear()
        self._subscriptions.clear()
        self._attachments.clear()

    @property
    def backend(self) -> str:
        return "memory"

    @property
    def connected(self) -> bool:
        return self._live and not self._broker.down

    @property
    def store(self) -> Store:
        return self._store

    async def ensure(self, mailbox: Mailbox) -> bool:
        """Make the mailbox if it is missing. True if it was made."""
        await self._reach()
        return self._broker.ensure(mailbox)

    async def attach(self, mailbox: Mailbox, epoch: int) -> MemoryAttachment:
        """Begin to pull; NoMailbox where nobody ensured it."""
        await self._reach()
        box = self._broker.mailbox(mailbox)
        attachment = MemoryAttachment(mailbox, epoch, box, self._broker.find)
        self._attachments[id(attachment)] = attachment
        return attachment

    async def fetch(self, attachment: Attachment, most: int, wait_s: float) -> Sequence[Delivery]:
        """What is there, up to `most`; else the first that comes within `wait_s` seconds."""
        if most < 1:
            raise ValueError(f"a fetch of {most} messages")
        mine = _mine(attachment)
        with mine.fetching(most) as waiter:
            await self._reach()
            sent = await mine.pull(waiter, wait_s)
            if mine.abandoned:
                self._check_live()
                return []
            if self._broker.down and not sent:
                raise Unavailable("the broker did not answer within the wait")
            self._out.setdefault(mine.mailbox, set()).update(one.position for one in sent)
            return sent

    def unheard(self, mailbox: Mailbox, positions: Iterable[int]) -> None:
        """What a fetch of ours brought was lost before anybody had it: it is not in our hands."""
        self._out.get(mailbox, set()).difference_update(positions)

    async def recall(self, attachment: Attachment) -> None:
        """End the outstanding fetch with what it was given. Answers while the broker is down."""
        self._check_live()
        _mine(attachment).recall()

    async def settle(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        """Tell the broker, in this order. A delivery of a destroyed mailbox is nobody's."""
        await self._reach()
        for delivery, verdict in verdicts:
            self._settle(delivery, verdict)

    def say(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        """Done and Retry, without a wait."""
        self._check_live()
        if self._broker.down:
            raise Unavailable("the broker does not answer; settle instead")
        for delivery, verdict in verdicts:
            assert isinstance(verdict, Done | Retry), "what is confirmed is settled"
            self._settle(delivery, verdict)

    async def release(self, attachment: Attachment) -> None:
        """Stop pulling. Answers while the broker is down. Idempotent."""
        self._check_live()
        mine = _mine(attachment)
        mine.release()
        self._attachments.pop(id(mine), None)

    async def abandon(self, attachment: Attachment) -> None:
        """Stop pulling, and say nothing of what was handed out, then or later. Idempotent."""
        mine = _mine(attachment)
        mine.abandon()
        self._attachments.pop(id(mine), None)
        if not self._attached(mine.mailbox):  # else it is ours again
            self._out.pop(mine.mailbox, None)
            self._lives[mine.mailbox] = self._lives.get(mine.mailbox, 0) + 1

    async def reclaim(
        self, mailbox: Mailbox, keep: Container[int] = (), only: Collection[int] | None = None
    ) -> int:
        """Hand back, in order and with their counts, what somebody holds. Returns how many."""
        await self._reach()
        box = self._broker.find(mailbox)
        if box is None:
            return 0
        ours = self._on_their_way(mailbox)
        if only is not None:
            ours |= self._out.get(mailbox, set()) | (set(box.outstanding) - set(only))
        return box.reclaim({at for at in box.outstanding if at in keep or at in ours})

    async def outstanding(self, mailbox: Mailbox) -> frozenset[int]:
        """The positions that are handed out and not settled, or queued to be handed out again."""
        await self._reach()
        box = self._broker.find(mailbox)
        if box is None:
            return frozenset()
        return frozenset(box.outstanding) - self._on_their_way(mailbox)

    async def sweep(self, mailbox: Mailbox) -> Sequence[Delivery]:
        """What stays without ever coming again, while nothing is in flight."""
        await self._reach()
        box = self._broker.find(mailbox)
        return [] if box is None else box.stuck()

    async def list(self, pattern: str) -> Sequence[MailboxState]:
        """Every mailbox whose topic matches, by topic and group."""
        await self._reach()
        return [box.state for box in self._broker.matching(pattern)]

    async def delete(self, mailbox: Mailbox) -> bool:
        """Destroy the mailbox and its mail. False if there was none."""
        await self._reach()
        return self._broker.delete(mailbox)

    async def publish(
        self, topic: str, body: bytes, *, message_id: str, within_s: float = PUBLISH_S
    ) -> Receipt:
        """Store a message, once for each id within the window."""
        await self._reach()
        return self._broker.publish(topic, bytes(body), message_id)

    async def subscribe(self, pattern: str, handler: Listen) -> MemorySubscription:
        """Every message of the pattern from now on."""
        await self._reach()
        subscription = self._broker.broadcast.open(pattern, handler)
        self._subscriptions.append(subscription)
        return subscription

    async def serve(self, subject: str, answer: Answer) -> MemoryServed:
        """Answer every question asked on `subject` from now on."""
        await self._reach()
        served = self._broker.questions.serve(subject, answer)
        self._served = [one for one in self._served if one.desk.open] + [served]
        return served

    async def ask(
        self, subject: str, body: bytes, *, wanted: int, within_s: float
    ) -> Sequence[bytes]:
        """The first `wanted` answers, or those that came within `within_s` seconds."""
        await self._reach()
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking[gone] = None
        try:
            answers = await self._broker.questions.ask(subject, body, wanted, within_s, gone)
        finally:
            self._asking.pop(gone, None)
        self._check_live()
        return answers

    async def recent(self, pattern: str, most: int) -> Sequence[tuple[str, bytes]]:
        """The newest `most` retained messages of the pattern, oldest first."""
        await self._reach()
        return self._broker.recent(pattern, most)

    async def peek(self, mailbox: Mailbox, most: int) -> Sequence[Waiting]:
        """The oldest `most` messages that the mailbox has not settled."""
        await self._reach()
        box = self._broker.find(mailbox)
        return [] if box is None else box.peek(min(most, MOST))

    async def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """The newest `limit` dead letters, newest first."""
        await self._reach()
        return self._broker.letters()[::-1][: max(0, limit)]

    async def dead_letter(self, id: str) -> DeadLetter | None:
        """One dead letter; None where there is none."""
        await self._reach()
        return self._broker.letter(id)

    async def drop_dead_letter(self, id: str) -> bool:
        """Remove a dead letter. False if there was none."""
        await self._reach()
        return self._broker.drop_letter(id)

    def _settle(self, delivery: Delivery, verdict: Verdict) -> None:
        match verdict:
            case Dead(reason):
                self._broker.bury(delivery, reason)
        self._out.get(delivery.mailbox, set()).discard(delivery.position)
        box = self._broker.find(delivery.mailbox)
        if box is None:
            return
        match verdict:
            case Done() | Dead():
                box.settle(delivery.position)
            case Retry(delay_s):
                box.retry(delivery.position, delay_s)
            case HandBack():
                box.hand_back(delivery.position)
                life = self._lives.get(delivery.mailbox, 0)
                box.remember(delivery.position, lambda: self._stands_by(delivery.mailbox, life))

    def _stands_by(self, mailbox: Mailbox, life: int) -> bool:
        """What was handed back of a mailbox is known here until it is abandoned."""
        return self._live and self._lives.get(mailbox, 0) == life

    def _attached(self, mailbox: Mailbox) -> Sequence[MemoryAttachment]:
        return [one for one in self._attachments.values() if one.mailbox == mailbox]

    def _on_their_way(self, mailbox: Mailbox) -> set[int]:
        """Positions that were given to a fetch of ours that has not answered."""
        return set[int]().union(*(one.positions for one in self._attached(mailbox)))

    async def _reach(self) -> None:
        """The way to the broker: others run meanwhile, and either end may be gone."""
        self._check_live()
        await asyncio.sleep(0)
        self._check_live()
        if self._broker.down:
            raise Unavailable("the broker does not answer; try again")

    def _check_live(self) -> None:
        if not self._live:
            raise NotLive(f"the client of {self.node_id} is not started, or was stopped")


def _mine(attachment: Attachment) -> MemoryAttachment:
    if not isinstance(attachment, MemoryAttachment):
        raise TypeError(f"{attachment!r} was attached by another broker")
    return attachment
