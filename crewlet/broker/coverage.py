"""Whether a seat has a mailbox: a publish to one that has none is refused, never swallowed.

The server acknowledges what no durable covers as if it were kept (design: measured), so that we
have to know. What is known stays in memory until the server says that a durable was deleted: a
publish to a topic that is known costs one look into a dict.
"""

from __future__ import annotations

import time
from typing import Final

from crewlet.broker import names
from crewlet.broker.api import STREAM_MISSING, Api, ApiError
from crewlet.broker.mailboxes import Mailboxes
from crewlet.broker.route import Message
from crewlet.broker.seat_topics import mailbox_of, no_mailbox
from crewlet.broker.wire import Wire

TRUST_S: Final = 60.0
"""How long a mailbox is believed in without being asked for. Deletions are heard within a way
through the broker; this bounds what is missed where it lets nobody listen to its advisories."""

DELETIONS: Final = (
    f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{names.AGENT}.*",
    f"$JS.EVENT.ADVISORY.STREAM.DELETED.{names.AGENT}",
)


class Coverage:
    """Which topics of seats have a mailbox, as far as this client knows."""

    def __init__(self, wire: Wire, api: Api, mailboxes: Mailboxes) -> None:
        self._wire = wire
        self._api = api
        self._mailboxes = mailboxes
        self._until: dict[str, float] = {}
        self._changes = 0
        wire.on_up.append(self.clear)

    def listen(self) -> None:
        """Hear of deletions from now on."""
        for subject in DELETIONS:
            self._wire.route(subject, self._heard)

    def covers(self, topic: str) -> bool:
        """Whether it is known, without a question, that nothing published there is lost unsaid:
        a mailbox covers it, or it is no seat's."""
        until = self._until.get(topic)
        return mailbox_of(topic) is None if until is None else until > time.monotonic()

    async def check(self, topic: str) -> None:
        """NoMailbox where the topic is a seat's and no mailbox covers it."""
        mailbox = mailbox_of(topic)
        if mailbox is None:
            return
        before = self._changes
        # The seat's own group nearly always; but whoever else reads it keeps mail as well.
        if await self._mailboxes.info(mailbox) is None and not await self._is_read(topic):
            raise no_mailbox(topic)
        if before == self._changes:  # else it may be the one that was deleted meanwhile
            self._until[topic] = time.monotonic() + TRUST_S

    def clear(self) -> None:
        """Something was deleted, or may have been while we could not hear of it. All is asked
        for anew: deletions are rare, and a question takes a fifth of a millisecond."""
        self._changes += 1
        self._until.clear()

    def _heard(self, message: Message) -> None:
        self.clear()

    async def _is_read(self, topic: str) -> bool:
        """By any group, which its durable's name shows unless it was cut."""
        try:
            async for name in self._api.pages(f"CONSUMER.NAMES.{names.AGENT}", "consumers"):
                if names.may_read(name, topic) and await self._reads(name, topic):
                    return True
        except ApiError as error:
            if error.code != STREAM_MISSING:
                raise
        return False

    async def _reads(self, name: str, topic: str) -> bool:
        info = await self._mailboxes.info_of(names.AGENT, name)
        return info is not None and info["config"].get("filter_subject") == topic
