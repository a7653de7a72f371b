"""Mail that is out at the broker and in nobody's hands.

A fetch that a dead process left behind at the broker may still be given a message after its
mailbox has changed hands. Nobody hands that back, and it would sit out its ack window. So the
mailbox of a dead holder is looked at for a while: what is out at two looks in a row, and neither
in hand here nor waiting for its time, is reclaimed. Only while a fetch of our own stands at the
broker: what was handed back, and waits for the next fetch, cannot be told from what is out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import structlog
from msgspec import Struct

from actors.delivery import Mailbox, Retry
from actors.messages import SettleBox
from actors.ports import Broker, Clock
from actors.tenure import WATCHED_S

LOOK_S: Final = 0.5
LOOK_S_A_MAILBOX: Final = 0.002
LOOK_S_A_SECOND: Final = 0.25
"""Between two looks: longer the more mailboxes are looked at (all of a node that died with a
thousand seats), and the longer it has been done. A stray that was seen is looked at again soon."""

RETRY_GRACE_S: Final = 2.0
"""How long a message that is due again may take to be fetched, before it is a stray."""

LATE_S: Final = 32.0
LATE_SPREAD_S: Final = 5
"""When a mailbox that was given up in order is looked at: what its last holder had sent to wait for
a retry (half a minute at most) is back by then, and what is out and nobody's was handed back to a
broker that died. Spread, so that a thousand are not asked in the same second."""

LATE_FOR_S: Final = 5.0

InHand = Callable[[Mailbox], Iterable[int]]

log = structlog.get_logger(__name__)


class Look(Struct, frozen=True):
    """Look at the mailbox of this ticket, from `since` on, unless it is after `until`; `seen` are
    the strays of the last look."""

    ticket: int
    since: float
    until: float
    seen: frozenset[int] = frozenset()


class Strays:
    """Of the mailboxes that are looked at. `in_hand` names the positions that this node holds."""

    def __init__(self, broker: Broker, clock: Clock, in_hand: InHand) -> None:
        self._broker = broker
        self._clock = clock
        self._in_hand = in_hand
        self._retries: dict[Mailbox, dict[int, float]] = {}

    def pause_s(self, look: Look) -> float:
        """Until the next look."""
        if look.seen:
            return LOOK_S
        lasted_s = min(WATCHED_S, self._clock.monotonic() - look.since)
        return max(LOOK_S, LOOK_S_A_MAILBOX * len(self._retries), LOOK_S_A_SECOND * lasted_s)

    def first_look(self, mailbox: Mailbox, ticket: int, for_s: float = WATCHED_S) -> Look:
        """The rest of a watch that another began is as old as that one's would be by now."""
        self._retries.setdefault(mailbox, {})
        until = self._clock.monotonic() + for_s
        return Look(ticket, until - WATCHED_S, until)

    def late_look(self, mailbox: Mailbox, ticket: int, after_s: float) -> Look:
        """To be looked at in so many seconds, for a few looks."""
        self._retries.setdefault(mailbox, {})
        since = self._clock.monotonic() + after_s
        return Look(ticket, since, since + LATE_FOR_S)

    def put_off(self, look: Look) -> Look:
        """Nothing could be told from a look now. It is not given up for that, however long a turn
        takes: the next one is within its time."""
        off = Look(look.ticket, look.since, look.until)
        until = self._clock.monotonic() + self.pause_s(off) + LATE_FOR_S
        return Look(off.ticket, off.since, max(off.until, until))

    def note(self, settled: SettleBox) -> None:
        """What waits for its time is no stray."""
        if not self._retries:  # nearly always: nothing is looked at
            return
        for delivery, verdict in settled.verdicts:
            if not isinstance(verdict, Retry):
                continue
            if (waiting := self._retries.get(delivery.mailbox)) is not None:
                due = self._clock.monotonic() + verdict.delay_s + RETRY_GRACE_S
                waiting[delivery.position] = due

    async def look(self, mailbox: Mailbox, look: Look, wanted: Callable[[], bool]) -> Look:
        """Reclaim what is certain; what the next look goes by. Raises what the broker raises."""
        known = self._known(mailbox)
        out = await self._broker.outstanding(mailbox)
        strays = out - known - self._known(mailbox)
        certain = strays & look.seen
        if certain and wanted():
            count = await self._broker.reclaim(mailbox, self._known(mailbox), certain)
            log.info("strays_reclaimed", mailbox=str(mailbox), messages=count)
        return Look(look.ticket, look.since, look.until, strays - certain)

    def forget(self, mailbox: Mailbox) -> None:
        self._retries.pop(mailbox, None)

    def _known(self, mailbox: Mailbox) -> frozenset[int]:
        now = self._clock.monotonic()
        waiting = self._retries.get(mailbox, {})
        for position in [position for position, due in waiting.items() if due < now]:
            del waiting[position]
        return frozenset(self._in_hand(mailbox)) | frozenset(waiting)
