"""One mailbox of the twin: its mail, the order it is handed out in, and its waiting members.

The order is JetStream's as measured (docs/adr/0004-one-port-two-brokers.md): the redelivery
queue, first in by arrival, is served before mail that was never handed out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from msgspec import Struct

from actors.delivery import Delivery, Mailbox
from actors.ports import MailboxState
from crewlet import topics
from crewlet.broker.port import Waiting

ACK_WINDOW_S: Final = 1800.0
"""How long a message that was handed out is nobody else's (docs/contract.md 42)."""

ROUTER_ACK_WINDOW_S: Final = 20.0
"""The same of the deliveries from outside, which several nodes read (docs/contract.md 278)."""

MAX_DELIVER: Final = 30
"""The broker's own limit, above the client's budget: a backstop that bounds the loop."""

SHORTEST_DELAY_S: Final = 0.01
"""A delayed message is never back at once: JetStream's floor, as measured."""

_TICK_S: Final = 1e-6
"""A timer may fire within the clock's resolution before its time."""


class Mail(Struct, frozen=True):
    """A stored message."""

    position: int
    message_id: str
    body: bytes
    at: datetime


def _by_nobody() -> bool:
    return False


@dataclass(slots=True)
class Held:
    """A message that was handed out at least once and is not settled for good."""

    mail: Mail
    count: int = 0
    due: float | None = None
    """When it comes back by itself; None while it is queued to be handed out, or stuck."""
    until: float = 0.0
    """The same as the broker wrote it down; it is not told of a hand-back."""
    queued: bool = False
    timer: asyncio.TimerHandle | None = None
    remembered: Callable[[], bool] = _by_nobody
    """Whether whoever handed it back still lives: it would say so again after a restart."""

    @property
    def stuck(self) -> bool:
        """At the broker's own limit: it never comes again by itself."""
        return self.due is None and not self.queued

    def disarm(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer, self.due = None, None


@dataclass(slots=True, eq=False)
class Waiter:
    """A fetch that waits for its first message; `sent` is what it was given."""

    most: int
    woken: asyncio.Future[None]
    sent: list[Delivery] = field(default_factory=list)

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class MemoryMailbox:
    """Mail of one (topic, group). All methods are immediate; times are the loop's."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.deleted = False
        self.served = True
        """False while the broker is down: nothing is handed out."""
        self._fresh: deque[Mail] = deque()
        self._again: deque[int] = deque()
        self._held: dict[int, Held] = {}
        self._waiters: deque[Waiter] = deque()
        self._forsaken = False

    @property
    def state(self) -> MailboxState:
        out = sum(not held.stuck for held in self._held.values())
        return MailboxState(mailbox=self.mailbox, waiting=len(self._fresh), in_flight=out)

    def put(self, mail: Mail) -> None:
        """New mail goes to the end; a member that waits gets it at once."""
        self._fresh.append(mail)
        self.serve()

    def take(self, most: int) -> list[Delivery]:
        """Hand out what is there, up to `most`."""
        taken: list[Delivery] = []
        while self.served and len(taken) < most and (held := self._next()) is not None:
            taken.append(self._hand_out(held))
        self._forsaken = self._forsaken and not taken
        return taken

    def line_up(self, waiter: Waiter) -> None:
        """Wait for the next mail. Members are served in the order they came."""
        self._waiters.append(waiter)

    def leave(self, waiter: Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def forsake(self, waiter: Waiter) -> None:
        """Its fetch was ended from outside. The broker finds that out with the next message
        that it tries on it, unless somebody looks at the mailbox before."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
            self._forsaken = True

    def looked_at(self) -> None:
        """Somebody asks how it stands: that, too, makes the broker find out."""
        self._forsaken = False

    def serve(self) -> None:
        """Give what is there to those who wait."""
        while self._waiters:
            waiter = self._waiters[0]
            if not waiter.woken.done():
                waiter.sent = self.take(waiter.most)
                if not waiter.sent:
                    return
            self._waiters.popleft()
            waiter.wake()
        self._try_in_vain()

    def _try_in_vain(self) -> None:
        """A redelivery that was tried on a forsaken fetch goes to the end of its queue."""
        if self._forsaken and self.served and (self._again or self._fresh):
            self._forsaken = False
            self._again.rotate(-1)

    def settle(self, position: int) -> bool:
        """Forget a message that was handed out, whoever holds it now."""
        held = self._held.pop(position, None)
        if held is None:
            return False
        held.disarm()
        if held.queued:
            self._again.remove(position)
        return True

    def retry(self, position: int, delay_s: float) -> None:
        """Back after `delay_s`; until then in nobody's hands, and not in the queue either.
        Without a delay it is a hand-back. What the broker gave up on stays where it is."""
        if delay_s <= 0:
            self.hand_back(position)
            return
        held = self._held.get(position)
        if held is None or held.stuck:
            return
        if held.queued:
            self._again.remove(position)
            held.queued = False
        self._arm(held, max(delay_s, SHORTEST_DELAY_S))

    def hand_back(self, position: int) -> None:
        """To the end of the redelivery queue, which is the head of the mailbox."""
        if self._requeue(position):
            self.serve()

    def remember(self, position: int, alive: Callable[[], bool]) -> None:
        """Somebody handed this back, and will say so again while it lives."""
        if held := self._held.get(position):
            held.remembered = alive

    @property
    def outstanding(self) -> list[int]:
        """The positions that are out, oldest first: held by somebody, waiting for a retry, or
        queued after they were handed back."""
        self.looked_at()
        return sorted(position for position, held in self._held.items() if not held.stuck)

    def reclaim(self, spared: Container[int] = ()) -> int:
        """Hand back all that is out, in the order of its positions: what somebody holds and
        what waits for a retry. What is queued already is counted, and keeps its place."""
        out = [position for position in self.outstanding if position not in spared]
        for position in out:
            self._requeue(position)
        self.serve()
        return len(out)

    def restarted(self) -> None:
        """The broker came back. Its queue of redeliveries was in its memory only: what was
        handed back is out again until its window ends, or until somebody reclaims it - or, if
        the client that handed it back lives, until that has said so again, in order."""
        lost, self._again = sorted(self._again), deque()
        self._forsaken = False
        for position in lost:
            held = self._held[position]
            if held.remembered():
                self._again.append(position)
                continue
            held.queued = False
            self._arm_at(held, held.until)
        self._expire()

    @property
    def positions(self) -> set[int]:
        """Of all mail that is not settled."""
        return {*self._held, *(mail.position for mail in self._fresh)}

    def stuck(self) -> list[Delivery]:
        """What the broker gave up on, oldest first; nothing while anything is in flight."""
        self.looked_at()
        if not all(held.stuck for held in self._held.values()):
            return []
        return [self._delivery(held) for _, held in sorted(self._held.items())]

    def peek(self, most: int) -> list[Waiting]:
        """What is not settled, by position; nothing is handed out by it."""
        self.looked_at()
        mail = [*((one.mail, True) for one in self._held.values())]
        mail += [(one, False) for one in self._fresh]
        mail.sort(key=lambda one: one[0].position)
        return [
            Waiting(one.position, one.at, one.message_id, one.body, out)
            for one, out in mail[: max(0, most)]
        ]

    def close(self) -> None:
        """The mailbox is destroyed: its mail is gone, and nobody waits for it any more."""
        self.deleted = True
        for held in self._held.values():
            held.disarm()
        for waiter in self._waiters:
            waiter.wake()
        self._fresh.clear()
        self._again.clear()
        self._held.clear()
        self._waiters.clear()

    def _next(self) -> Held | None:
        while self._again:
            held = self._held[self._again.popleft()]
            held.queued = False
            if held.count < MAX_DELIVER:
                return held
            # It stays, held by nobody, until somebody settles it or destroys the mailbox.
        if not self._fresh:
            return None
        mail = self._fresh.popleft()
        held = self._held[mail.position] = Held(mail)
        return held

    def _hand_out(self, held: Held) -> Delivery:
        held.count += 1
        inbound = self.mailbox.topic == topics.INBOUND
        self._arm(held, ROUTER_ACK_WINDOW_S if inbound else ACK_WINDOW_S)
        return self._delivery(held)

    def _delivery(self, held: Held) -> Delivery:
        return Delivery(
            mailbox=self.mailbox,
            body=held.mail.body,
            count=held.count,
            position=held.mail.position,
            receipt=f"{held.mail.position}:{held.count}",
            message_id=held.mail.message_id,
        )

    def _requeue(self, position: int) -> bool:
        held = self._held.get(position)
        if held is None or held.queued or held.stuck:
            return False
        held.disarm()
        held.queued = True
        self._again.append(position)
        return True

    def _arm(self, held: Held, after_s: float) -> None:
        self._arm_at(held, asyncio.get_running_loop().time() + after_s)

    def _arm_at(self, held: Held, due: float) -> None:
        held.disarm()
        held.due = held.until = due
        held.timer = asyncio.get_running_loop().call_at(due, self._expire)

    def _expire(self) -> None:
        """Queue all that is due, oldest first: timers of one instant fire in any order."""
        now = asyncio.get_running_loop().time() + _TICK_S
        due = sorted(
            (held.due, position)
            for position, held in self._held.items()
            if held.due is not None and held.due <= now
        )
        for _, position in due:
            self._requeue(position)
        self.serve()
