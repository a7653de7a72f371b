"""The mail of a mailbox, looked at and left where it is: nothing is handed out by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from actors.delivery import Mailbox
from crewlet.broker import names
from crewlet.broker.api import Api, Stored
from crewlet.broker.port import Waiting
from crewlet.broker.pull import ID_HEADER

MOST: Final = 100
MOST_BYTES: Final = 16 * 1024 * 1024
"""A look is held in memory whole; each message of it is one question to the leader."""


async def peek(api: Api, mailbox: Mailbox, info: Mapping[str, Any], most: int) -> Sequence[Waiting]:
    """What the durable of this `info` has not settled, oldest first.

    Up to its last delivery the stream does not say whose a message is: one that only another
    group still needs is shown too, as handed out.
    """
    if not info["num_pending"] and not info["num_ack_pending"]:
        return []
    handed_out = int(info["delivered"]["stream_seq"])
    sequence, size = int(info["ack_floor"]["stream_seq"]) + 1, 0
    found: list[Waiting] = []
    while len(found) < min(most, MOST) and size <= MOST_BYTES:
        question = {"seq": sequence, "next_by_subj": mailbox.topic}
        message = await api.message(names.stream_of(mailbox.topic), question)
        if message is None:
            break
        found.append(_waiting(message, handed_out))
        sequence, size = message.sequence + 1, size + len(message.body)
    return found


def _waiting(message: Stored, handed_out: int) -> Waiting:
    return Waiting(
        position=message.sequence,
        at=message.at,
        message_id=message.headers.get(ID_HEADER, ""),
        body=message.body,
        handed_out=message.sequence <= handed_out,
    )
