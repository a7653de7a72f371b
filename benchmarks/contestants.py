"""Those who empty a mailbox: the bare loop that is the limit, other clients, and a seat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from nats.aio.msg import Msg

from actors.delivery import Ack, Mailbox, Outcome, Partition
from actors.machines.signals import Hold, Lift
from actors.node import NodeSpec
from actors.ports import Consumed
from actors.runtime import SeatRuntime
from actors.seat import INBOX, SeatSpec
from benchmarks.place import POLL_S, Place
from crewlet import topics
from crewlet.broker import names
from crewlet.inbound.letters import read

BATCH: Final = 20
ACK: Final = b"+ACK"
EXPIRY_NS: Final = 30 * 10**9
FILLING: Final = "filling"


class Contestant:
    """Empties `mailbox`, twenty at a time, and acknowledges what it took.

    `open` once, then a round for each filling: `ready` before the clock runs; `drain` under it,
    until the last message was handled; `rest` after it.
    """

    subject: str
    mailbox: Mailbox

    async def open(self, place: Place) -> None:
        raise NotImplementedError

    async def fill(self, place: Place, bodies: Sequence[bytes]) -> None:
        """Returns when the broker has all of them."""
        await place.fill(self.mailbox, bodies)

    async def emptied(self, place: Place) -> None:
        """Returns when the broker has every acknowledgement."""
        await place.emptied(self.mailbox)

    async def ready(self, count: int) -> None:
        """Whatever is not a part of emptying a mailbox."""

    async def drain(self, count: int) -> None:
        raise NotImplementedError

    async def rest(self) -> None:
        """Take nothing more until the mailbox has been filled again."""

    async def close(self) -> None:
        """Leave."""


class _Batch:
    """Takes the place of a subscription's queue: nats-py's read loop calls it directly."""

    def __init__(self) -> None:
        self.receipts: list[str] = []
        self.full: asyncio.Future[None] | None = None

    def put_nowait(self, message: Msg) -> None:
        self.receipts.append(message.reply)
        if len(self.receipts) == BATCH and self.full is not None:
            self.full.set_result(None)


class RawPull(Contestant):
    """The limit: ask for twenty, take them, acknowledge them. Nothing is read or decoded.

    It knows that the mailbox is full, so that it needs no end of a batch but the twentieth.
    """

    subject = "raw pull"
    mailbox = topics.inbox_of("raw")

    async def open(self, place: Place) -> None:
        await place.broker.ensure(self.mailbox)
        self._client = await place.connect()
        self._inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(self._inbox, pending_bytes_limit=0)
        self._batch = subscription._pending_queue = _Batch()  # type: ignore[assignment]
        stream, consumer = names.stream_of(self.mailbox.topic), names.consumer(self.mailbox)
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"

    async def drain(self, count: int) -> None:
        client, batch, loop = self._client, self._batch, asyncio.get_running_loop()
        request = json.dumps({"batch": BATCH, "expires": EXPIRY_NS, "no_wait": True}).encode()
        for _ in range(count // BATCH):
            batch.full = loop.create_future()
            await client.publish(self._next, request, self._inbox)
            await batch.full
            receipts, batch.receipts = batch.receipts, []
            for receipt in receipts:
                await client.publish(receipt, ACK)

    async def close(self) -> None:
        await self._client.close()


class NatsFetch(Contestant):
    """nats-py's own way: `fetch(20)`, then `ack` each."""

    subject = "nats-py fetch"
    mailbox = topics.inbox_of("fetch")

    async def open(self, place: Place) -> None:
        await place.broker.ensure(self.mailbox)
        self._client = await place.connect()
        stream, consumer = names.stream_of(self.mailbox.topic), names.consumer(self.mailbox)
        self._pull = await self._client.jetstream().pull_subscribe_bind(consumer, stream)

    async def drain(self, count: int) -> None:
        done = 0
        while done < count:
            messages = await self._pull.fetch(BATCH, timeout=5)
            for message in messages:
                await message.ack()
            done += len(messages)

    async def close(self) -> None:
        await self._client.close()


class FastStream(Contestant):
    """FastStream's JetStream pull subscriber, twenty at a time, each given to a handler that
    does nothing; its bodies are left as bytes. Started when the mailbox is full."""

    subject = "faststream"
    mailbox = topics.inbox_of("faststream")

    def __init__(self, *, whole_batches: bool = False) -> None:
        from faststream.nats import NatsBroker

        self._broker_of = NatsBroker
        self._whole = whole_batches
        if whole_batches:
            self.subject = "faststream, batch"
            self.mailbox = topics.inbox_of("faststream-batch")

    async def open(self, place: Place) -> None:
        await place.broker.ensure(self.mailbox)
        self._place = place

    async def ready(self, count: int) -> None:
        """It pulls as soon as it has started: what it does before the clock is a present."""
        self._broker, self._left, self._done = self._made(), count, asyncio.Event()
        await self._broker.start()

    async def drain(self, count: int) -> None:
        await self._done.wait()

    async def rest(self) -> None:
        await self._broker.stop()

    def _made(self) -> Any:
        from faststream.nats import JStream, PullSub

        address = self._place.address
        login = f"{address.user}:{address.password}"
        broker = self._broker_of(
            [f"nats://{login}@{server.split('//')[1]}" for server in address.servers],
            apply_types=False,
            decoder=_as_it_is,
            logger=None,
        )
        broker.subscriber(
            self.mailbox.topic,
            durable=names.consumer(self.mailbox),
            stream=JStream(names.stream_of(self.mailbox.topic), declare=False),
            pull_sub=PullSub(batch_size=BATCH, timeout=5, batch=self._whole),
        )(self._handle)
        return broker

    async def _handle(self, body: Any) -> None:
        self._left -= len(body) if self._whole else 1
        if self._left <= 0:
            self._done.set()


async def _as_it_is(message: Any) -> Any:
    return message.body


class SeatPath(Contestant):
    """A seat of ours, from fetch to settle: decoded, split into conversations, each given to
    a turn of its own whose handler does nothing, settled. No ledger, no events."""

    def __init__(self, subject: str, handle: str) -> None:
        self.subject = subject
        self.mailbox = topics.inbox_of(handle)
        self._handle = handle
        self._left = 0
        self._done = asyncio.Event()

    async def open(self, place: Place) -> None:
        boxes = (self.mailbox, topics.control_of(self._handle), topics.reflect_of(self._handle))
        for box in boxes:
            await place.broker.ensure(box)
        inbox, control, reflect = (Consumed(box, read, self._run) for box in boxes)
        seat = SeatSpec(self._handle, inbox, control, reflect, holds=(FILLING,))
        self._runtime = SeatRuntime(NodeSpec(place.broker, (seat,)))
        await self._runtime.start()

    async def ready(self, count: int) -> None:
        self._left = count
        self._done.clear()

    async def drain(self, count: int) -> None:
        await self._runtime.brake(self._handle, INBOX, Lift(FILLING))
        await self._done.wait()

    async def rest(self) -> None:
        """A hold recalls the outstanding pull; it is over when the box rests."""
        await self._runtime.brake(self._handle, INBOX, Hold(FILLING))
        while not await self._rests():  # noqa: ASYNC110 - the broker's answer is waited for
            await asyncio.sleep(POLL_S)

    async def _rests(self) -> bool:
        described = await self._runtime.describe(self._handle)
        assert described is not None
        return any(box.box == INBOX and box.state == "resting" for box in described.boxes)

    async def _run(self, partition: Partition) -> Outcome:
        self._left -= len(partition.letters)
        if self._left <= 0:
            self._done.set()
        return Ack()

    async def close(self) -> None:
        await self._runtime.drain(5.0)
        await self._runtime.stop()
