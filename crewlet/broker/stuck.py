"""Mail that JetStream itself gave up on: it delivered it MAX_DELIVER times and keeps it for ever.

The server says how many messages of a durable are in that state and not which. While nothing of
the durable is out, they are the ones that it counts as redelivered (measured on 2.15.1: across
restarts, and also behind an ack floor that has moved on).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from actors.delivery import Delivery, Mailbox
from crewlet.broker import names, receipts
from crewlet.broker.api import Api, Stored
from crewlet.broker.pull import ID_HEADER, MOST_BYTES
from crewlet.broker.topology import MAX_DELIVER

log = structlog.get_logger(__name__)

MOST: Final = 100
"""Deliveries of one sweep; the next one brings the rest."""


async def stuck(api: Api, mailbox: Mailbox, info: Mapping[str, Any]) -> Sequence[Delivery]:
    """The stuck messages of a mailbox by its durable's `info`, oldest first.

    The stream may hold more messages of the topic that were handed out than are stuck: those
    that only another group still needs. Which is which cannot be told then, and nothing is
    returned until that group has settled them.
    """
    number = int(info["num_redelivered"])
    if info["num_ack_pending"] != 0 or number == 0:
        return []
    last, seen, size, at = int(info["delivered"]["stream_seq"]), 0, 0, 0
    found: list[Delivery] = []
    while at < last:
        message = await _next(api, mailbox, at + 1)
        if message is None or message.sequence > last:
            break
        at, seen, size = message.sequence, seen + 1, size + len(message.body)
        if seen > number:
            log.info("broker_sweep_postponed", mailbox=str(mailbox), stuck=number)
            return []
        if not found or (len(found) < MOST and size <= MOST_BYTES):
            found.append(_delivery(mailbox, message, int(info["delivered"]["consumer_seq"])))
    return found


async def _next(api: Api, mailbox: Mailbox, sequence: int) -> Stored | None:
    question = {"seq": sequence, "next_by_subj": mailbox.topic}
    return await api.message(names.stream_of(mailbox.topic), question)


def _delivery(mailbox: Mailbox, message: Stored, turn: int) -> Delivery:
    """With a receipt that takes the message out: the server looks at its sequence only."""
    stream, consumer = names.stream_of(mailbox.topic), names.consumer(mailbox)
    return Delivery(
        mailbox=mailbox,
        body=message.body,
        count=MAX_DELIVER,
        position=message.sequence,
        receipt=receipts.write(stream, consumer, message.sequence, turn),
        message_id=message.headers.get(ID_HEADER, ""),
    )
