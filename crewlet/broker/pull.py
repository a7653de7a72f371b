"""One-shot pulls over one subscription: what nats-py's `fetch` promises and does not keep.

A pull asks for "the first message, then all that is there" in one request. The server ends it
with a status, or by filling the batch. A pull that we want to end is ended by taking away its
subscription, with a barrier behind which nothing can still be on its way (docs/adr/0003).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import Final, Protocol

import msgspec
import structlog

from actors.delivery import Delivery, Mailbox
from actors.ports import STANDS_S, NoMailbox, NotLive, Unavailable
from crewlet.broker import receipts
from crewlet.broker.route import Message, Route, status
from crewlet.broker.topology import SECOND
from crewlet.broker.wire import Wire

log = structlog.get_logger(__name__)

EXPIRY_S: Final = (400.0, 600.0)
"""How long a pull stays parked at a server of our own; spread, so that a thousand do not end in
the same second. Long, because asking again is what an idle seat costs (docs/benchmarks.md); a
pull that this server has lost is noticed by the connection, which broke with it."""

TOGETHER_S: Final = 0.25
"""Pulls end at multiples of this, those of a client together: one that ends alone costs the client
and the server three times as much, for a wake of each (docs/benchmarks.md)."""

SHARED_EXPIRY_S: Final = (0.8 * STANDS_S, STANDS_S - TOGETHER_S)
"""How long one stays parked at a server that others use too: there it outlives a client that died
unseen, and a cluster may lose it while our connection stays up."""

GRACE_S: Final = 6.0
"""How much later than its expiry a pull may end before we stop believing in it."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""What one pull may bring: a drain of a hundred of the largest messages would be 800 MiB."""

BARRIER_S: Final = 3.0
LATE_S: Final = 1.0
"""How long a message may come after the status that ends its pull: where a mailbox has replicas,
it is sent once a majority knows of it, and the status overtakes it (measured)."""

YOUNG_S: Final = 2.3
"""A server that takes leaves hands mail to a pull for its first 2 s whether anybody listens or not
(nats-server 2.15.1: read, and measured); the rest is for the request's way there."""

PAUSE_S: Final = (0.05, 0.15)
ID_HEADER: Final = "Nats-Msg-Id"

_LEFT: Final = "Nats-Pending-Messages"
"""How many of those that were asked for the server has not given."""

_COMPLETED: Final = "409 batch completed"
_EXPIRED: Final = frozenset({"404", "408"})
_HARMLESS: Final = _EXPIRED | {"up", "", _COMPLETED}
_DELETED: Final = ("consumer deleted", "stream deleted", "consumer not found", "stream not found")


class Care(Protocol):
    """What a pull asks of its client when something went wrong."""

    async def repair(self, pull: Pull) -> bool:
        """Hand back what was lost on its way to us; False: try again later."""

    async def gone(self, pull: Pull) -> bool:
        """The mailbox does not exist any more."""


class Pull:
    """This process's hold on one mailbox, from attach to release.

    Not for two tasks at once: one `fetch` at a time, `recall` beside it.
    """

    def __init__(
        self,
        wire: Wire,
        mailbox: Mailbox,
        epoch: int,
        *,
        stream: str,
        consumer: str,
        care: Care,
        expiry_s: tuple[float, float] = SHARED_EXPIRY_S,
        replicated: bool = False,
        leaves: bool = False,
    ) -> None:
        self._wire = wire
        self._mailbox = mailbox
        self._epoch = epoch
        self.stream = stream
        self.consumer = consumer
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._route: Route | None = None
        self._inbox = ""
        self._number = 0
        self._wanted = self._most = 0
        self._arrived: list[Delivery] = []
        self._end: asyncio.Future[str] | None = None
        self._quieting: asyncio.Task[None] | None = None
        self._recalled = False
        self._busy = False
        """The last fetch brought mail, so that the next probably does: it is sent at once. What is
        only parked joins the others that are sent in the same turn of the loop, in one write."""
        self._care = care
        self._expiry_s = expiry_s
        self._broken = False
        self._leaves = leaves
        self._young_until = 0.0
        self._over_there = asyncio.Event()
        self.distant = replicated or leaves
        self.fetching = False
        self.released = False
        self.abandoned = False
        self.cleanup: asyncio.Task[None] | None = None

    @property
    def mailbox(self) -> Mailbox:
        return self._mailbox

    @property
    def epoch(self) -> int:
        return self._epoch

    async def fetch(self, most: int, wait_s: float) -> list[Delivery]:
        """What the port says. Cancelled or failed, it leaves what arrived to `leftovers`, and
        its pull to `quiet`."""
        if self.released:
            raise NotLive(f"the attachment to {self._mailbox} was released")
        if self.fetching:
            raise RuntimeError(f"a second fetch on {self._mailbox}: one at a time")
        self.fetching, self._recalled, self._wanted = True, False, max(1, most)
        self._most = self._wanted
        try:
            await self._fill(time.monotonic() + wait_s)
            if self._recalled:
                await self.quiet()
            # Released, its messages belong to whoever released it.
            some = [] if self.released else self._some()
            self._busy = bool(some)
            return some
        finally:
            self.fetching = False

    async def recall(self) -> None:
        """Make the outstanding fetch answer; nothing without one."""
        if self.fetching:
            self._recalled = True
            await self.quiet()
            self._ended("recalled")

    async def abandon(self) -> None:
        """End the pull, and drop what came of it and still comes: nobody is told of it."""
        self.abandoned = self.released = True
        await self.recall()
        await self.quiet()
        self.leftovers()

    async def mend(self) -> None:
        """Have handed back what may have been lost on its way to us, if anything may."""
        if self._broken and self._wire.connected:
            await self._grown()
            self._broken = False
            self._broken = not await self._care.repair(self) or self._broken

    async def quiet(self) -> None:
        """End the pull at the server. Afterwards all that was sent to us is in `leftovers`,
        unless the connection broke: then the server's record is the only one."""
        if self._quieting is None or self._quieting.done():
            self._quieting = asyncio.create_task(self._take_route())
        # Not cancelled with its waiter: others wait for the same barrier.
        await asyncio.wait({self._quieting})

    def _some(self) -> list[Delivery]:
        """What arrived, as far as it was asked for; the rest is the next fetch's."""
        some, self._arrived = self._arrived[: self._most], self._arrived[self._most :]
        return some

    def leftovers(self) -> list[Delivery]:
        """What arrived and was not answered yet; whoever takes it settles it."""
        arrived, self._arrived = self._arrived, []
        return arrived

    @property
    def positions(self) -> set[int]:
        """Of the leftovers."""
        return {delivery.position for delivery in self._arrived}

    def went_down(self) -> None:
        """The connection was lost: what has arrived is all that comes of this pull."""
        if self._arrived:
            self._ended("lost")

    def came_up(self, *, ours: bool) -> None:
        """The connection is a new one. The old pull may have survived at the server, or not:
        without its subscription it is certainly over. `ours`: the mailbox certainly is, so
        that what was lost on its way to us may be repaired before the next pull."""
        self._broken = ours
        if self._route is not None and (self._quieting is None or self._quieting.done()):
            self._wire.drop(self._route)
            self._route = None
        self._ended("up")

    # -- inside ----------------------------------------------------------------------------

    async def _fill(self, deadline: float) -> None:
        """Pull until something is here, the time is over, or the fetch was recalled."""
        while True:
            await self.mend()
            if self._recalled or self._arrived:
                return
            left_s = max(0.0, deadline - time.monotonic())
            # Without a connection nothing is sent: a pull in the buffer would come twice.
            reason = await (self._pull if self._wire.connected else self._wait)(left_s)
            if self._arrived or self._recalled:
                return
            await self._after(reason, left_s)
            if deadline - time.monotonic() < 0.001:
                return

    async def _after(self, reason: str, left_s: float) -> None:
        """A pull brought nothing. Ends by the clock and by a reconnect are pulled again at
        once; a refusal after a pause, unless the mailbox is what is missing."""
        if reason in _HARMLESS:
            return
        log.debug("broker_pull_ended", mailbox=str(self._mailbox), reason=reason)
        if reason == "deleted" or (reason.startswith("503") and await self._care.gone(self)):
            raise NoMailbox(f"the mailbox {self._mailbox} is not there any more")
        await self._wait(min(random.uniform(*PAUSE_S), left_s))  # noqa: S311

    async def _pull(self, left_s: float) -> str:
        """One pull, from its request to its end; answers why it ended."""
        if self._quieting is not None and not self._quieting.done():
            await self.quiet()
        if self._route is None:
            self._inbox = self._wire.new_inbox()
            self._route = self._wire.route(f"{self._inbox}.*", self._deliver)
        self._number += 1
        self._wanted = self._most
        least_s, most_s = self._expiry_s
        if self._number == 1:  # a thousand that attach together do not end together
            least_s = 0.0
        expiry_s = min(left_s, _with_others(random.uniform(least_s, most_s)))  # noqa: S311
        self._wire.send(self._subject, self._request(expiry_s), f"{self._inbox}.{self._number}")
        if self._busy:
            self._busy = False
            self._wire.flush()
        if self._leaves:
            self._young_until = time.monotonic() + YOUNG_S
            self._over_there.clear()
        reason = await self._wait(expiry_s + GRACE_S)
        if reason in ("", "lost"):
            await self.quiet()
        return reason

    def _request(self, expiry_s: float) -> bytes:
        request = {"batch": self._most, "no_wait": True, "max_bytes": MOST_BYTES}
        nanoseconds = int(expiry_s * SECOND)
        return msgspec.json.encode(
            request | {"expires": nanoseconds} if nanoseconds > 1_000_000 else request
        )

    async def _wait(self, timeout_s: float) -> str:
        """Why it was ended; empty when it was not, in time."""
        loop = asyncio.get_running_loop()
        self._end = loop.create_future()
        clock = loop.call_later(timeout_s, self._ended, "")  # less than half of asyncio.timeout
        try:
            return await self._end
        finally:
            clock.cancel()
            self._end = None

    def _ended(self, reason: str) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(reason)

    async def _take_route(self) -> None:
        await self._grown()
        route, self._route = self._route, None
        if route is None:
            return
        try:
            complete = await self._wire.unroute(route, BARRIER_S)
        except (NotLive, Unavailable):
            self._wire.drop(route)
            complete = False
        # A server that lived and did not answer may have sent more than we have seen.
        # With replicas it may also have given a message that no majority knew of yet, and that
        # was sent to nobody afterwards (measured); behind a leaf, one that was on its way to us.
        self._broken |= self._wire.connected and (self.distant or not complete)

    async def _grown(self) -> None:
        """Returns when the last pull takes nothing without its route: the server has ended it, or
        it is old enough."""
        left_s = self._young_until - time.monotonic()
        if left_s > 0 and not self._over_there.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over_there.wait(), left_s)

    def _deliver(self, message: Message) -> None:
        """Inside the read loop: a message of the pull, or the status that ends it."""
        if receipts.is_receipt(message.reply):
            if self.abandoned and self._leaves:
                self._turn_away(message)
                return
            self._arrived.append(_delivery(self._mailbox, message))
            if len(self._arrived) >= self._wanted:
                self._over_there.set()
                self._ended("full")
        elif message.subject.endswith(f".{self._number}"):
            self._told(message)

    def _turn_away(self, message: Message) -> None:
        """It came while an abandoned pull grew old: nobody was ever given it, and the successor
        has looked already. At once or not at all; a word that waits may meet the successor's."""
        with contextlib.suppress(NotLive, Unavailable):
            if self._wire.connected:
                self._wire.send(message.reply, receipts.HAND_BACK)

    def _told(self, message: Message) -> None:
        """The pull is over, once all has come that it was given."""
        self._over_there.set()
        if self._end is None or self._end.done():
            return
        number, reason = self._number, _reason(message)
        left = message.headers.get(_LEFT, "0" if reason == _COMPLETED else "")
        late = self._most - int(left) - len(self._arrived) if left.isdigit() else 0
        if late <= 0:
            self._ended(reason)
            return
        self._wanted = len(self._arrived) + late
        asyncio.get_running_loop().call_later(LATE_S, self._over, number, reason)

    def _over(self, number: int, reason: str) -> None:
        if number == self._number:
            self._ended(reason)


def _with_others(expiry_s: float) -> float:
    """A little longer, until others end too."""
    return expiry_s - (time.monotonic() + expiry_s) % TOGETHER_S + TOGETHER_S


def _delivery(mailbox: Mailbox, message: Message) -> Delivery:
    known = receipts.read(message.reply)
    return Delivery(
        mailbox=mailbox,
        body=message.data,
        count=known.count if known else None,
        position=known.sequence if known else 0,
        receipt=message.reply,
        message_id=message.headers.get(ID_HEADER, ""),
    )


def _reason(message: Message) -> str:
    code = status(message)
    text = message.headers.get("Description", "").lower()
    if code == "409" and any(phrase in text for phrase in _DELETED):
        return "deleted"
    return code if code in _EXPIRED else f"{code} {text}"
