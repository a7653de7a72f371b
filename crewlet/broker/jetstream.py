"""A node's client of a NATS JetStream server: the mailboxes, broadcasts, dead letters, store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Container, Iterator, Sequence
from typing import Final

import structlog

from actors.delivery import Delivery, HandBack, Mailbox, Verdict
from actors.ports import (
    PUBLISH_S,
    Attachment,
    MailboxState,
    NoMailbox,
    NotLive,
    Receipt,
    Unavailable,
)
from crewlet.broker import names, receipts
from crewlet.broker.api import Api, ApiError
from crewlet.broker.broadcast import Broadcast
from crewlet.broker.coverage import Coverage
from crewlet.broker.dead_letters import DeadLetters
from crewlet.broker.dial import Address
from crewlet.broker.elections import Elections
from crewlet.broker.history import History
from crewlet.broker.kv import JetStreamStore
from crewlet.broker.mailboxes import Mailboxes
from crewlet.broker.patience import patiently
from crewlet.broker.patterns import namespace_of
from crewlet.broker.peek import peek
from crewlet.broker.port import Answer, DeadLetter, Listen, Subscription, Waiting
from crewlet.broker.posting import Posting
from crewlet.broker.pull import EXPIRY_S, SHARED_EXPIRY_S, Pull
from crewlet.broker.pulls import Pulls
from crewlet.broker.questions import Questions
from crewlet.broker.repairs import Repairs
from crewlet.broker.settings import EVENT_RETENTION_HOURS
from crewlet.broker.settle import Settler
from crewlet.broker.stuck import stuck
from crewlet.broker.topology import Topology
from crewlet.broker.wire import NoResponders, Wire
from crewlet.coordination.store import BUCKETS, Store
from crewlet.errors import BrokerRefused

log = structlog.get_logger(__name__)

CONNECT_S: Final = 10.0
PROBE_S: Final = 2.0
STOP_S: Final = 5.0
GONE_S: Final = 0.1


class JetStreamBroker:
    """See crewlet.broker.port.CompanyBroker.

    `memory` says that the server keeps nothing on files. `exclusive` says that nobody but this
    process can reach the server, so that what is out was handed to us or is lost. `patience_s`
    is how long `start` waits for a cluster that has no leader, or not all its members.
    """

    def __init__(
        self,
        address: Address,
        *,
        memory: bool = False,
        replicas: int = 1,
        event_retention_hours: int = EVENT_RETENTION_HOURS,
        exclusive: bool = False,
        patience_s: float = 0.0,
    ) -> None:
        self._wire = Wire(address)
        self._api = Api(self._wire)
        self._topology = Topology(
            self._api,
            memory=memory,
            replicas=replicas,
            event_retention_hours=event_retention_hours,
        )
        self._history = History(self._wire, self._api)
        self._dead_letters = DeadLetters(self._api, self._history)
        self._settler = Settler(self._wire, self._dead_letters)
        self._mailboxes = Mailboxes(self._wire, self._api, self._topology)
        self._store = JetStreamStore(self._api, self._topology.ensure_bucket)
        self._questions = Questions(self._wire)
        self._exclusive = exclusive
        self._patience_s = patience_s
        self._started = False
        self._gate = asyncio.Lock()
        self._repairs = Repairs(self._mailboxes, exclusive=exclusive)
        self._coverage = Coverage(self._wire, self._api, self._mailboxes)
        self._posting = Posting(self._api, self._topology, self._coverage)
        self._pulls = Pulls()
        self._elections = Elections(self._wire, self._pulls)
        self._leaves = False
        self._wire.on_down.append(lambda: self._repairs.went_down(self._pulls))
        self._wire.on_up.append(lambda: self._repairs.came_up(self._pulls))

    @property
    def backend(self) -> str:
        return "jetstream"

    @property
    def connected(self) -> bool:
        return self._wire.connected

    @property
    def store(self) -> Store:
        return self._store

    def set_servers(self, servers: list[str]) -> None:
        """Dial these from now on."""
        self._wire.set_servers(servers)

    async def start(self) -> None:
        """Connect and make the streams and buckets that are missing. Unavailable, or
        BrokerRefused for a server or a stream that would lose mail."""
        async with self._gate:
            if not self._started:
                await self._begin()
                self._started = True

    async def stop(self) -> None:
        """Leave; an outstanding fetch answers, and what is on its way to it is handed back."""
        async with self._gate:
            if self._started:
                self._started = False
                await self._leave()

    async def _begin(self) -> None:
        await self._wire.open(CONNECT_S)
        try:
            self._coverage.listen()
            self._elections.listen()  # also where others made the streams, with more replicas
            await patiently(self._provision, self._patience_s)
        except BaseException as error:
            await self._wire.close()
            if isinstance(error, NoResponders):
                raise BrokerRefused(
                    "the server runs without JetStream: enable it in the server's configuration"
                ) from error
            raise

    async def _provision(self) -> None:
        with _in_words_of_the_port():
            info = await self._api.call("INFO", wait_s=PROBE_S)
            self._leaves = bool(info.get("domain"))  # else nobody behind a leaf could reach it
            await self._topology.provision()
            for bucket in BUCKETS:
                await self._topology.ensure_bucket(bucket)

    async def _leave(self) -> None:
        for pull in self._pulls:  # from now on a fetch brings nothing that nobody could settle
            pull.released = True
        leaving = [asyncio.create_task(self.release(pull)) for pull in self._pulls]
        if leaving:
            await asyncio.wait(leaving, timeout=STOP_S if self._wire.connected else GONE_S)
        self._pulls.clear()
        await self._questions.end()
        await self._wire.close()  # ends whatever still waits for the broker
        await asyncio.gather(*leaving, return_exceptions=True)

    # -- mailboxes -------------------------------------------------------------------------

    async def ensure(self, mailbox: Mailbox) -> bool:
        with _in_words_of_the_port():
            return await self._mailboxes.ensure(mailbox)

    async def attach(self, mailbox: Mailbox, epoch: int) -> Attachment:
        with _in_words_of_the_port():
            there = await self._mailboxes.is_there(mailbox)
        if not there:
            raise NoMailbox(f"nobody ever ensured the mailbox {mailbox}")
        pull = Pull(
            self._wire,
            mailbox,
            epoch,
            stream=names.stream_of(mailbox.topic),
            consumer=names.consumer(mailbox),
            care=self._repairs,
            expiry_s=EXPIRY_S if self._exclusive else SHARED_EXPIRY_S,
            replicated=self._topology.replicated,
            leaves=self._leaves,
        )
        self._pulls.add(pull)
        self._repairs.attached(pull)
        return pull

    async def fetch(self, attachment: Attachment, most: int, wait_s: float) -> Sequence[Delivery]:
        pull = _own(attachment)
        self._wire.check_live()
        if pull.fetching:
            raise RuntimeError(f"a second fetch on {pull.mailbox}: one at a time")
        if pull.cleanup is not None:
            await asyncio.wait({pull.cleanup})
        try:
            deliveries = await pull.fetch(most, wait_s)
        except BaseException:
            # Nobody will take what comes of this pull: the server is told so, and then given
            # back what it had already sent. The next fetch, or the release, waits for that.
            if not pull.abandoned:
                pull.cleanup = asyncio.create_task(self._hand_back(pull))
            raise
        if not pull.abandoned:
            self._repairs.took(pull.mailbox, deliveries)
        return deliveries

    async def recall(self, attachment: Attachment) -> None:
        await _own(attachment).recall()

    async def settle(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        self._wire.check_live()
        with _in_words_of_the_port():
            for delivery, verdict in verdicts:
                try:
                    await self._settler.settle(delivery, verdict)
                except NoResponders:
                    # Of a mailbox that was deleted nothing is left to settle.
                    if await self._mailboxes.info(delivery.mailbox) is not None:
                        raise
                self._repairs.told([(delivery, verdict)])

    def say(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        self._wire.check_live()
        self._settler.say(verdicts)
        self._repairs.told(verdicts)

    async def release(self, attachment: Attachment) -> None:
        pull = _own(attachment)
        pull.released = True
        self._pulls.discard(pull)
        if pull.cleanup is not None:
            await asyncio.wait({pull.cleanup})
        await pull.recall()
        await self._hand_back(pull)
        if not pull.abandoned:
            self._repairs.tidy(pull.mailbox)

    async def abandon(self, attachment: Attachment) -> None:
        pull = _own(attachment)
        pull.abandoned = True
        self._pulls.discard(pull)
        if not self._pulls.of(pull.mailbox):  # else it is ours again
            self._repairs.forget(pull.mailbox)
        if pull.cleanup is not None:
            pull.cleanup.cancel()
        # Without a connection words wait: they must not be said to a successor's mailbox.
        self._wire.forget_all(receipts.to(pull.stream, pull.consumer))
        with contextlib.suppress(NotLive):
            await pull.abandon()

    async def reclaim(
        self, mailbox: Mailbox, keep: Container[int] = (), only: Collection[int] | None = None
    ) -> int:
        if only is None and self._mailboxes.pop_nothing_out(mailbox):
            return 0
        spared = False

        def word(position: int) -> bytes | None:
            nonlocal spared
            spare = position in keep or self._is_ours(mailbox, position, only)
            spared = spared or spare
            return None if spare else receipts.HAND_BACK

        with _in_words_of_the_port():
            count = await self._mailboxes.reclaim(mailbox, word)
        if not spared:
            self._repairs.reclaimed(mailbox)
        return count

    async def outstanding(self, mailbox: Mailbox) -> frozenset[int]:
        self._wire.check_live()
        with _in_words_of_the_port():
            found = await self._mailboxes.outstanding(mailbox)
        return found - self._on_their_way(mailbox)

    async def sweep(self, mailbox: Mailbox) -> Sequence[Delivery]:
        with _in_words_of_the_port():
            info = await self._mailboxes.info(mailbox)
            return await stuck(self._api, mailbox, info) if info is not None else []

    async def list(self, pattern: str) -> Sequence[MailboxState]:
        with _in_words_of_the_port():
            return await self._mailboxes.list(pattern)

    async def peek(self, mailbox: Mailbox, most: int) -> Sequence[Waiting]:
        with _in_words_of_the_port():
            info = await self._mailboxes.info(mailbox)
            return await peek(self._api, mailbox, info, most) if info is not None else []

    async def delete(self, mailbox: Mailbox) -> bool:
        with _in_words_of_the_port():
            try:
                return await self._mailboxes.delete(mailbox)
            finally:
                self._coverage.clear()

    async def publish(
        self, topic: str, body: bytes, *, message_id: str, within_s: float = PUBLISH_S
    ) -> Receipt:
        self._wire.check_live()
        with _in_words_of_the_port():
            return await self._posting.post(topic, body, message_id, within_s)

    # -- beyond mailboxes ------------------------------------------------------------------

    async def subscribe(self, pattern: str, handler: Listen) -> Subscription:
        subscription = Broadcast(self._wire, pattern, handler)
        await self._wire.barrier(PUBLISH_S)  # from now on means: before the next publish
        return subscription

    async def serve(self, subject: str, answer: Answer) -> Subscription:
        return await self._questions.serve(subject, answer)

    async def ask(
        self, subject: str, body: bytes, *, wanted: int, within_s: float
    ) -> Sequence[bytes]:
        return await self._questions.ask(subject, body, wanted=wanted, within_s=within_s)

    async def recent(self, pattern: str, most: int) -> Sequence[tuple[str, bytes]]:
        self._wire.check_live()
        stream = names.RETAINED.get(namespace_of(pattern))
        if stream is None:
            return []
        with _in_words_of_the_port():
            stored = await self._history.last(stream, pattern, most)
        return [(one.subject, one.body) for one in stored]

    async def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        with _in_words_of_the_port():
            return await self._dead_letters.newest(limit)

    async def dead_letter(self, id: str) -> DeadLetter | None:
        self._wire.check_live()
        with _in_words_of_the_port():
            return await self._dead_letters.get(id)

    async def drop_dead_letter(self, id: str) -> bool:
        self._wire.check_live()
        with _in_words_of_the_port():
            return await self._dead_letters.drop(id)

    # -- inside ----------------------------------------------------------------------------

    async def _hand_back(self, pull: Pull) -> None:
        """End the pull and return what nobody took, in order. What fails here (the broker is
        away) is on its list of what is out, and repaired or reclaimed from there."""
        await pull.quiet()
        deliveries = pull.leftovers()
        try:
            for delivery in deliveries:
                if pull.abandoned:
                    return
                await self._settler.settle(delivery, HandBack())
            if pull.distant:
                await pull.mend()
        except (NotLive, Unavailable):
            log.warning("broker_hand_back_failed", mailbox=str(pull.mailbox), of=len(deliveries))

    def _is_ours(self, mailbox: Mailbox, position: int, only: Collection[int] | None) -> bool:
        """It came to us: a reclaim leaves it alone. Of `only` also what a fetch brought since."""
        if only is not None and (position not in only or self._repairs.has(mailbox, position)):
            return True
        return position in self._on_their_way(mailbox)

    def _on_their_way(self, mailbox: Mailbox) -> frozenset[int]:
        """Positions that came for a fetch of ours that has not answered."""
        found = [pull.positions for pull in self._pulls.of(mailbox)]
        return frozenset[int]().union(*found)


def _own(attachment: Attachment) -> Pull:
    if not isinstance(attachment, Pull):
        raise TypeError(f"{attachment!r} was not attached by this client")
    return attachment


@contextlib.contextmanager
def _in_words_of_the_port() -> Iterator[None]:
    """What the server refused although it was asked rightly: it may take it later."""
    try:
        yield
    except ApiError as error:
        raise Unavailable(f"the broker refused: {error}") from error
