"""Mailboxes as durables of streams: making, listing, deleting, and a dead holder's mail."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import structlog
from msgspec import Struct

from actors.delivery import Mailbox
from actors.ports import MailboxState
from crewlet.broker import names, receipts
from crewlet.broker.api import (
    MAILBOX_EXISTS,
    MAILBOX_MISSING,
    STREAM_MISSING,
    WAIT_S,
    Api,
    ApiError,
)
from crewlet.broker.patterns import checked_pattern, matches
from crewlet.broker.topology import Topology
from crewlet.broker.wire import Wire

log = structlog.get_logger(__name__)

CONFIRM_S: Final = 5.0

MOST_GHOSTS: Final = 100_000
"""The longest stretch of a stream that is gone through for notes of messages that are gone."""

ACK: Final = b"+ACK"

JUST_NOW_S: Final = 1.0
"""Whoever has a mailbox ensured attaches it within this, and need not be told again that it is
there. One that was deleted in between is found missing by the first fetch."""


class _Seen(Struct):
    """When it was ensured, and whether anything was out then, as far as is known."""

    at: float
    out: bool


class Mailboxes:
    """The verbs of the port that move no mail, and `reclaim`."""

    def __init__(self, wire: Wire, api: Api, topology: Topology) -> None:
        self._wire = wire
        self._api = api
        self._topology = topology
        self._seen: dict[Mailbox, _Seen] = {}

    async def ensure(self, mailbox: Mailbox) -> bool:
        """Asked of the broker each time: a peer may have deleted what we once made."""
        stream = await self._topology.ensure_for(mailbox.topic)
        try:
            made, out = await self._create(stream, mailbox)
        except ApiError as error:
            if error.code != STREAM_MISSING:
                raise
            self._topology.forget(stream)
            stream = await self._topology.ensure_for(mailbox.topic)
            made, out = await self._create(stream, mailbox)
        self._seen[mailbox] = _Seen(time.monotonic(), out)
        return made

    async def is_there(self, mailbox: Mailbox) -> bool:
        """Not asked of the broker where it was ensured a moment ago."""
        return _just_now(self._seen.pop(mailbox, None)) or await self.info(mailbox) is not None

    def pop_nothing_out(self, mailbox: Mailbox) -> bool:
        """Whether nothing was, when it was ensured a moment ago. Answers once: thousands of seats
        of a node that died are ensured and reclaimed, and a question each is what that costs."""
        seen = self._seen.get(mailbox)
        if seen is None or seen.out:
            return False
        seen.out = True
        return _just_now(seen)

    async def info(self, mailbox: Mailbox, wait_s: float = WAIT_S) -> dict[str, Any] | None:
        """The durable's own state; None where there is no such mailbox."""
        return await self.info_of(names.stream_of(mailbox.topic), names.consumer(mailbox), wait_s)

    async def info_of(
        self, stream: str, consumer: str, wait_s: float = WAIT_S
    ) -> dict[str, Any] | None:
        """The same by the durable's name."""
        try:
            return await self._api.call(f"CONSUMER.INFO.{stream}.{consumer}", wait_s=wait_s)
        except ApiError as error:
            if error.code in (MAILBOX_MISSING, STREAM_MISSING):
                return None
            raise

    async def delete(self, mailbox: Mailbox) -> bool:
        self._seen.pop(mailbox, None)
        stream = names.stream_of(mailbox.topic)
        try:
            await self._api.call(f"CONSUMER.DELETE.{stream}.{names.consumer(mailbox)}")
        except ApiError as error:
            if error.code in (MAILBOX_MISSING, STREAM_MISSING):
                return False
            raise
        return True

    async def list(self, pattern: str) -> Sequence[MailboxState]:
        if not pattern:
            raise ValueError("an empty pattern lists nothing: '>' lists every mailbox")
        checked_pattern(pattern)
        found = []
        async for stream in self._api.pages("STREAM.NAMES", "streams"):
            if not stream.startswith("CREWLET_"):
                continue
            async for info in self._api.pages(f"CONSUMER.LIST.{stream}", "consumers"):
                state = _state(info)
                if state is not None and matches(pattern, state.mailbox.topic):
                    found.append(state)
        return sorted(found, key=lambda state: state.mailbox)

    async def reclaim(self, mailbox: Mailbox, word: Callable[[int], bytes | None]) -> int:
        """Say `word` of each message that is out, in order and confirmed; None passes it over."""
        info = await self.info(mailbox)
        if info is None or info["num_ack_pending"] == 0:
            return 0
        stream, consumer = names.stream_of(mailbox.topic), names.consumer(mailbox)
        last, turn = info["delivered"]["stream_seq"], info["delivered"]["consumer_seq"]
        floor, there, count = info["ack_floor"]["stream_seq"], set[int](), 0
        async for sequence in self._out(mailbox, info):
            there.add(sequence)
            said = word(sequence)
            if said is not None:
                receipt = receipts.write(stream, consumer, sequence, turn)
                await self._wire.request(receipt, said, wait_s=CONFIRM_S)
                count += 1
        pending = int(info["num_ack_pending"])
        if len(there) < pending and last - floor <= MOST_GHOSTS:
            ghosts = (seq for seq in range(floor + 1, last + 1) if seq not in there)
            await self._lay(receipts.write(stream, consumer, seq, turn) for seq in ghosts)
        # A message that only another group still needs was walked too; the broker ignored that.
        return min(count, pending)

    async def outstanding(self, mailbox: Mailbox) -> frozenset[int]:
        """The positions that are out; one question where there are none."""
        info = await self.info(mailbox)
        if info is None or info["num_ack_pending"] == 0:
            return frozenset()
        return frozenset([sequence async for sequence in self._out(mailbox, info)])

    async def _out(self, mailbox: Mailbox, info: Mapping[str, Any]) -> AsyncIterator[int]:
        """The durable does not say which messages are out; in its stream they are those of the
        topic between its ack floor and its last delivery that are still there."""
        stream, last = names.stream_of(mailbox.topic), info["delivered"]["stream_seq"]
        sequence = info["ack_floor"]["stream_seq"] + 1
        while sequence <= last:
            question = {"seq": sequence, "next_by_subj": mailbox.topic}
            message = await self._api.message(stream, question)
            if message is None or message.sequence > last:
                return
            yield message.sequence
            sequence = message.sequence + 1

    async def _lay(self, ghosts: Iterable[str]) -> None:
        """Acknowledge what is counted as out and is not there any more.

        A server that was killed may come back with the message gone and its own note of it
        kept; only its ack window would end that. What is not out is ignored.
        """
        self._wire.send_soon((receipt, ACK) for receipt in ghosts)
        await self._wire.barrier(CONFIRM_S)

    async def _create(self, stream: str, mailbox: Mailbox) -> tuple[bool, bool]:
        """Whether it was made, and whether anything may be out."""
        if (info := await self.info(mailbox)) is not None:
            return False, info["num_ack_pending"] > 0
        start = await self._topology.last_sequence(stream) + 1
        config = self._topology.mailbox(mailbox, start)
        try:
            await self._api.call(
                f"CONSUMER.CREATE.{stream}.{config['name']}.{mailbox.topic}",
                {"stream_name": stream, "config": config, "action": "create"},
            )
        except ApiError as error:
            if error.code != MAILBOX_EXISTS:
                raise
            return False, True
        return True, False


def _just_now(seen: _Seen | None) -> bool:
    return seen is not None and time.monotonic() - seen.at < JUST_NOW_S


def _state(info: Mapping[str, Any]) -> MailboxState | None:
    """None for a durable that does not prove by its name whose it is."""
    metadata = info["config"].get("metadata") or {}
    mailbox = Mailbox(topic=metadata.get("topic", ""), group=metadata.get("group", ""))
    if names.consumer(mailbox) != info["name"]:
        log.warning(
            "jetstream_subscription_unnamed", stream=info["stream_name"], consumer=info["name"]
        )
        return None
    return MailboxState(
        mailbox=mailbox, waiting=info["num_pending"], in_flight=info["num_ack_pending"]
    )
