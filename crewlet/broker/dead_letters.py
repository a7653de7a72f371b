"""Dead letters: how one is stored, and how they are read again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from actors.delivery import Delivery, Mailbox
from actors.ports import Unavailable
from crewlet import topics
from crewlet.broker import names
from crewlet.broker.api import Api, ApiError, Stored
from crewlet.broker.history import History
from crewlet.broker.port import DeadLetter
from crewlet.broker.pull import ID_HEADER

TOPIC: Final = "Crewlet-Topic"
GROUP: Final = "Crewlet-Group"
REASON: Final = "Crewlet-Reason"
DELIVERIES: Final = "Crewlet-Deliveries"
MESSAGE_ID: Final = "Crewlet-Message-Id"

REASON_BYTES: Final = 2048
STORE_S: Final = 5.0

_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f]+")


class DeadLetters:
    """The dead letters of all mailboxes, in the order in which they were given up."""

    def __init__(self, api: Api, history: History) -> None:
        self._api = api
        self._history = history

    async def store(self, delivery: Delivery, reason: str) -> None:
        """Store the body as it is. Once only: a retry comes under the same id."""
        await self._api.ask(
            topics.dead_letter(delivery.mailbox),
            delivery.body,
            headers=_headers(delivery, reason),
            wait_s=STORE_S,
        )

    async def newest(self, limit: int) -> Sequence[DeadLetter]:
        """The newest `limit`, newest first."""
        stored = await self._history.last(names.DLQ, topics.DEAD_LETTERS, limit)
        return [letter for one in reversed(stored) if (letter := _letter(one)) is not None]

    async def get(self, id: str) -> DeadLetter | None:
        if not _is_id(id):
            return None
        stored = await self._api.message(names.DLQ, {"seq": int(id)})
        return _letter(stored) if stored is not None else None

    async def drop(self, id: str) -> bool:
        if await self.get(id) is None:
            return False
        try:
            await self._api.call(f"STREAM.MSG.DELETE.{names.DLQ}", {"seq": int(id)})
        except ApiError as error:
            if await self.get(id) is None:
                return False  # somebody else was faster; JetStream calls it a failure
            raise Unavailable(f"the dead letter {id} stays: {error}") from error
        return True


def _headers(delivery: Delivery, reason: str) -> dict[str, str]:
    mailbox = delivery.mailbox
    # The position is the message's own for ever; with the mailbox it names this death.
    death = f"dead-{topics.digest(mailbox)}-{delivery.position}"
    return {
        ID_HEADER: f"{death}-{_line(delivery.message_id)}",
        TOPIC: _line(mailbox.topic),
        GROUP: _line(mailbox.group),
        REASON: _line(reason),
        DELIVERIES: str(delivery.count or 0),
        MESSAGE_ID: _line(delivery.message_id),
    }


def _line(text: str) -> str:
    """One bounded line: a reason may hold a traceback, an id whatever a caller made of it."""
    flat = _BREAKS.sub(" ", text).strip().encode(errors="replace")
    return flat[:REASON_BYTES].decode(errors="ignore")


def _is_id(id: str) -> bool:
    return id.isascii() and id.isdigit() and 0 < int(id) < 2**63


def _letter(stored: Stored) -> DeadLetter | None:
    """None for a message that nobody of ours put there."""
    headers = stored.headers
    if TOPIC not in headers or GROUP not in headers:
        return None
    deliveries = headers.get(DELIVERIES, "")
    return DeadLetter(
        id=str(stored.sequence),
        mailbox=Mailbox(topic=headers[TOPIC], group=headers[GROUP]),
        reason=headers.get(REASON, ""),
        deliveries=int(deliveries) if deliveries.isdigit() else 0,
        at=stored.at,
        message_id=headers.get(MESSAGE_ID, ""),
        body=stored.body,
    )
