"""What a broken connection may have swallowed: what each mailbox was told, to be said again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from actors.delivery import Delivery, Mailbox, Verdict
from actors.ports import Unavailable
from crewlet.broker.api import ApiError
from crewlet.broker.mailboxes import Mailboxes
from crewlet.broker.pull import Pull
from crewlet.broker.settle import Held

log = structlog.get_logger(__name__)

OURS_S: Final = 10.0
"""After an outage longer than this a mailbox may have got another owner (a session is valid for
17 s from its renewal), so that only its owner's own reclaim may touch what is out."""


class Repairs:
    """One client's memory of its deliveries, and the care of its pulls.

    `exclusive` says that nobody but this process can reach the server, so that what is out was
    handed to us or is lost.
    """

    def __init__(self, mailboxes: Mailboxes, *, exclusive: bool) -> None:
        self._mailboxes = mailboxes
        self._exclusive = exclusive
        self._down_since: float | None = None
        self._connections = 0
        self._held: dict[Mailbox, Held] = {}

    # -- what is remembered ----------------------------------------------------------------

    def took(self, mailbox: Mailbox, deliveries: Sequence[Delivery]) -> None:
        held = self._held.setdefault(mailbox, Held())
        held.connection = self._connections
        held.took(deliveries)

    def told(self, verdicts: Iterable[tuple[Delivery, Verdict]]) -> None:
        mailbox, held = None, None
        for delivery, verdict in verdicts:
            if delivery.mailbox is not mailbox:  # nearly always all are of one: looked up once
                mailbox = delivery.mailbox
                held = self._held.get(mailbox)
            if held is not None:
                held.told(delivery.position, verdict)

    def has(self, mailbox: Mailbox, position: int) -> bool:
        """This client was handed it, and has said nothing of it yet."""
        held = self._held.get(mailbox)
        return held is not None and held.has(position)

    def tidy(self, mailbox: Mailbox) -> None:
        """The mailbox was let go of: nothing needs to be known of one that owes nothing."""
        held = self._held.get(mailbox)
        if held is not None and held.empty:
            del self._held[mailbox]

    def forget(self, mailbox: Mailbox) -> None:
        """Whatever is out is somebody else's: nothing of it is ever said again."""
        self._held.pop(mailbox, None)

    def reclaimed(self, mailbox: Mailbox) -> None:
        """All that was out was handed back: nothing is left to be said again."""
        if held := self._held.get(mailbox):
            held.connection = self._connections

    # -- connections -----------------------------------------------------------------------

    def went_down(self, pulls: Iterable[Pull]) -> None:
        self._down_since = self._down_since or time.monotonic()
        for pull in pulls:
            pull.went_down()

    def came_up(self, pulls: Iterable[Pull]) -> None:
        self._connections += 1
        since, self._down_since = self._down_since, None
        outage_s = time.monotonic() - since if since is not None else 0.0
        for pull in pulls:
            pull.came_up(ours=self._exclusive or outage_s < OURS_S)

    def attached(self, pull: Pull) -> None:
        """The connection may have broken while nobody was attached."""
        held = self._held.get(pull.mailbox)
        if held is not None and held.connection != self._connections and not held.empty:
            pull.came_up(ours=True)

    # -- care of a pull --------------------------------------------------------------------

    async def gone(self, pull: Pull) -> bool:
        """Nobody serves it. An unknown answer is no."""
        try:
            return await self._mailboxes.info(pull.mailbox) is None
        except (Unavailable, ApiError):
            return False

    async def repair(self, pull: Pull) -> bool:
        """Its connection broke. Hand back what was lost on its way to us, say again what we may
        have said in vain. False when it has to be tried again."""
        if pull.abandoned:
            return True
        held = self._held.get(pull.mailbox, Held())
        here = pull.positions
        # Of a mailbox with several readers, what is out and not ours may be a peer's work.
        alone = self._exclusive or pull.epoch > 0

        def word(position: int) -> bytes | None:
            if pull.abandoned or position in here:
                return None
            return held.word(position) if alone or held.knows(position) else None

        try:
            count = await self._mailboxes.reclaim(pull.mailbox, word)
        except (Unavailable, ApiError) as error:
            log.warning("broker_repair_failed", mailbox=str(pull.mailbox), error=str(error))
            return False
        held.connection = self._connections
        if count:
            log.info("broker_mail_repaired", mailbox=str(pull.mailbox), count=count)
        return True
