"""Leases as the fleet writes them, and what a holder may do under one.

Two kinds of rows: a node's *session* (`node:ID`), renewed as long as its process lives, and what
is held under a session (`seat:HANDLE`, `worker:DUTY`), written only when it changes hands
(docs/adr/0009).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from actors.delivery import Fence
from actors.ports import STANDS_S, BrokerError

__all__ = [
    "MAIL_OUT",
    "NODE",
    "SEAT",
    "WATCHED_S",
    "WORKER",
    "Fence",
    "Fenced",
    "Heard",
    "Lease",
    "LeaseStore",
    "Lost",
    "Session",
    "Tenure",
    "Watch",
    "resource_of",
]

NODE: Final = "node:"
SEAT: Final = "seat:"
WORKER: Final = "worker:"


def resource_of(name: str) -> str:
    """The resource of a seat's handle, or of a duty that is written `worker:NAME`; a handle
    holds no colon."""
    return name if name.startswith(WORKER) else SEAT + name


MAIL_OUT: Final = "mail_out_s"
"""In the `about` of a seat's row that was released: for how many seconds more, on anybody's clock,
what somebody had in flight may still be out, because the seat was given up again before a dead
holder's mail was taken back, or because its node had not been heard for a while."""


WATCHED_S: Final = 1.25 * STANDS_S
"""How long a dead holder's mail is looked for: until its last fetch must be over, and a quarter
more, which is how far apart looks are by then (`actors.strays.LOOK_S_A_SECOND`)."""


class Lost(BrokerError):
    """Somebody else's write came first: nothing was changed, and what was held is not any more."""


class Lease(Struct, frozen=True, kw_only=True):
    """One row. `resource` is `node:ID`, `seat:HANDLE` or `worker:DUTY`.

    `owner` is a process incarnation, `node` the id it goes by. `epoch` rises with every change of
    hands and never falls. `session` is the epoch of the owner's own `node:` row under which this
    one was taken (for a `node:` row its own epoch). `released`: given up, in place. `preferred`
    names the node that should have it next: a hint, no right. `about` says more of a node: its
    roles, labels, whether it is leaving. `revision` is the store's, 0 for a row not written yet.
    """

    resource: str
    owner: str
    node: str
    epoch: int
    session: int
    released: bool = False
    preferred: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    revision: int = 0


Heard = Callable[[Lease], None]


class Watch(Protocol):
    async def close(self) -> None:
        """Nothing is heard after this returns. Idempotent."""


class LeaseStore(Protocol):
    """Where the rows are. Every call ends within seconds: with its answer, with `Lost` (no), or
    with Unavailable (unknown) or NotLive."""

    async def read(self, resource: str) -> Lease | None:
        """The row as the leader has it."""

    async def list(self) -> Sequence[Lease]:
        """Every row: seats and duties first, then nodes, so that a session that is missing from
        the second part has ended."""

    async def write(self, lease: Lease) -> Lease:
        """Write the row if `lease.revision` is still the last of its resource (0: there is none);
        the row with its new revision, else `Lost`. A write whose answer was lost is repeated
        under its id until it is decided or the time is over."""

    def watch(self, heard: Heard) -> Awaitable[Watch]:
        """Hear every row there is, in the order of revisions, then each one as it is written.
        Returns once the rows that were there have been heard. After a gap all rows are heard
        again: the same revision may come twice, an older one never after a newer one."""


class Session:
    """A node's own session as far as the node knows. Written by the lease supervisor alone, read
    by whoever works under it; times are seconds of the node's monotonic clock. `leaving`: the node
    gives up its seats, and starts nothing on those that it has not let go of yet."""

    __slots__ = ("epoch", "leaving", "start_until", "valid_until")

    def __init__(self) -> None:
        self.epoch = 0
        self.leaving = False
        self.valid_until = float("-inf")
        self.start_until = float("-inf")


class Tenure:
    """The right of one holder to one seat, `under` the session of that epoch. It ends once, and
    never begins again. `watch_s`: where a dead holder's mail was out when it began, for how long a
    fetch of that one may still take more."""

    __slots__ = ("ended", "fence", "session", "under", "watch_s")

    def __init__(
        self, fence: Fence, session: Session, under: int, watch_s: float = WATCHED_S
    ) -> None:
        self.fence = fence
        self.session = session
        self.under = under
        self.watch_s = watch_s
        self.ended = False

    def may_start(self, now: float) -> bool:
        """A new turn: the session was confirmed a moment ago, and the node stays."""
        session = self.session
        return self.may_settle(now) and now < session.start_until and not session.leaving

    def may_settle(self, now: float) -> bool:
        """To tell the broker anything: the session is valid, and the same."""
        session = self.session
        return not self.ended and session.epoch == self.under and now < session.valid_until


class Fenced(BrokerError):
    """The completion came too late: the seat is somebody else's. Nothing was recorded; the turn
    is neither acknowledged nor handed back by whoever is told this."""
