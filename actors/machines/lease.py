"""A node's own session: taken, renewed, doubted, over - and taken anew.

What it may do follows from when the last *applied* renewal was *sent*. Reading the row extends
nothing; an answer that comes late counts from when it was asked for; a session that is over
stays over, whatever is heard of it later.

The caller's duties: one `Look` or `Write` is outstanding at a time and is answered once; `Wake`
replaces the last one; effects are carried out in their order.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from actors.machines.timing import TTL, Timing, patience_s
from actors.tenure import NODE, Lease

AGAIN_S: Final = 0.5
"""Between two tries while nothing is decided."""

LOST: Final = "another took it"
LAPSED: Final = "no renewal was applied in time"


class State(Enum):
    OUT = "out"
    TAKING = "taking"
    HELD = "held"
    LEAVING = "leaving"
    LEFT = "left"


# -- inputs -------------------------------------------------------------------------------


class Begin(Struct, frozen=True):
    """Have a session. `about`: what the row says of the node."""

    about: dict[str, str]


class About(Struct, frozen=True):
    """What the row says of the node is something else now."""

    about: dict[str, str]


class Looked(Struct, frozen=True):
    """The row as the store has it."""

    lease: Lease | None


class Written(Struct, frozen=True):
    """A write was applied; it had been sent at `sent`."""

    lease: Lease
    sent: float


class Refused(Struct, frozen=True):
    """A write came after somebody else's."""


class Unanswered(Struct, frozen=True):
    """Nobody knows whether it was applied, or what the row is."""


class Woken(Struct, frozen=True):
    """The time of the last `Wake` has come."""


class Leave(Struct, frozen=True):
    """Nothing is held any more: give the session up."""


Input: TypeAlias = Begin | About | Looked | Written | Refused | Unanswered | Woken | Leave

# -- effects ------------------------------------------------------------------------------


class Look(Struct, frozen=True):
    """Read the row."""


class Write(Struct, frozen=True):
    lease: Lease


class Wake(Struct, frozen=True):
    """Step `Woken` at this time of the node's monotonic clock."""

    at: float


class Began(Struct, frozen=True):
    """A session stands: what was sent at `sent` was applied."""

    epoch: int
    sent: float


class Renewed(Struct, frozen=True):
    """`again`: it had been doubted."""

    sent: float
    again: bool


class Doubted(Struct, frozen=True):
    """Nothing was confirmed lately: start nothing new, keep everything."""


class Ended(Struct, frozen=True):
    """Everything that was held under it is gone: let go of it without a word."""

    reason: str


class Taken(Struct, frozen=True):
    """A process that lives goes by this node's id: there is no session to be had."""

    lease: Lease


class Left(Struct, frozen=True):
    """The session was given up, or nobody could be told; it is over either way."""


Effect: TypeAlias = Look | Write | Wake | Began | Renewed | Doubted | Ended | Taken | Left


class SessionMachine:
    """Of one process. `owner` is its incarnation; a predecessor's row that carries the same
    non-empty `seal` is of a process that is certainly dead."""

    def __init__(self, node: str, owner: str, timing: Timing, *, seal: str = "") -> None:
        self.state = State.OUT
        self.epoch = 0
        self.valid_until = float("-inf")
        self.start_until = float("-inf")
        self.doubted = False
        self._resource = NODE + node
        self._node = node
        self._owner = owner
        self._seal = seal
        self._timing = timing
        self._about: dict[str, str] = {}
        self._lease: Lease | None = None
        self._seen: tuple[int, float] | None = None
        self._busy = False
        self._next = float("inf")
        self._tries_until = float("-inf")
        self._stale_about = False
        self._leaving = False
        self._effects: list[Effect] = []

    def step(self, given: Input, now: float) -> list[Effect]:
        """Take an input at `now`, seconds of the node's monotonic clock."""
        if self.state is State.LEFT:
            return []
        self._expire(now)
        match given:
            case Begin(about=about):
                self._say(about)
                self._next = min(self._next, now)
            case About(about=about):
                self._say(about)
            case Looked(lease=lease):
                self._busy = False
                self._on_looked(lease, now)
            case Written(lease=lease, sent=sent):
                self._busy = False
                self._on_written(lease, sent, now)
            case Refused():
                self._busy = False
                if not self._leaving or self.state in (State.HELD, State.LEAVING):
                    self._look()
            case Unanswered():
                self._busy = False
                self._next = now + AGAIN_S
            case Leave():
                self._leaving = True
            case Woken():
                pass
        self._go_on(now)
        effects, self._effects = self._effects, []
        return effects

    # -- the answers --------------------------------------------------------------------

    def _say(self, about: dict[str, str]) -> None:
        self._about = dict(about)
        self._stale_about = True

    def _on_looked(self, lease: Lease | None, now: float) -> None:
        if self.state in (State.HELD, State.LEAVING):
            self._compare(lease, now)
        elif self._leaving:
            pass
        elif lease is None or lease.released or lease.owner == self._owner or self._dead(lease):
            self._take(lease)
        elif self._seen is None or self._seen[0] != lease.revision:
            if self._seen is not None:
                self._do(Taken(lease))
            self._seen = (lease.revision, now)
            self._next = now + AGAIN_S
        elif now - self._seen[1] >= patience_s(lease.about, self._timing.ttl_s):
            self._take(lease)
        else:
            self._next = now + AGAIN_S

    def _compare(self, lease: Lease | None, now: float) -> None:
        """A write was refused. It may have run into an earlier one of ours whose answer was
        lost: then the row is ours, and only its revision is news. That extends nothing."""
        ours = (
            lease is not None
            and not lease.released
            and lease.owner == self._owner
            and lease.epoch == self.epoch
        )
        if ours:
            self._lease = lease
            self._next = now
        elif self.state is State.HELD:
            self._end(LOST, now)
        else:
            self._left()

    def _dead(self, lease: Lease) -> bool:
        return bool(self._seal) and lease.about.get("seal") == self._seal

    def _take(self, lease: Lease | None) -> None:
        epoch = max(lease.epoch if lease else 0, self.epoch) + 1
        self.state, self._stale_about = State.TAKING, False
        self._write(
            Lease(
                resource=self._resource,
                owner=self._owner,
                node=self._node,
                epoch=epoch,
                session=epoch,
                about=self._row_about(),
                revision=lease.revision if lease else 0,
            )
        )

    def _on_written(self, lease: Lease, sent: float, now: float) -> None:
        if self.state is State.LEAVING:
            self._left()
        elif self.state is State.TAKING:
            self._on_taken(lease, sent, now)
        elif self.state is State.HELD and lease.epoch == self.epoch:
            self._lease = lease
            self._extend(sent)
            again, self.doubted = self.doubted, now >= self.start_until
            if not self.doubted:
                self._do(Renewed(sent, again))

    def _on_taken(self, lease: Lease, sent: float, now: float) -> None:
        if now >= sent + self._timing.valid_s:  # too late: it is begun anew, with another epoch
            self.state, self._next = State.OUT, now
            return
        self.state, self.epoch, self._lease = State.HELD, lease.epoch, lease
        self._extend(sent)
        if not self._leaving:
            self._do(Began(lease.epoch, sent))

    def _extend(self, sent: float) -> None:
        self.valid_until = max(self.valid_until, sent + self._timing.valid_s)
        self.start_until = max(self.start_until, sent + self._timing.confirm_s)
        self._next = sent + self._timing.renew_s

    # -- time -----------------------------------------------------------------------------

    def _expire(self, now: float) -> None:
        if self.state is State.LEAVING and now >= self._tries_until:
            self._left()
        if self.state is not State.HELD:
            return
        if now >= self.valid_until:
            self._end(LAPSED, now)
        elif now >= self.start_until and not self.doubted:
            self.doubted = True
            self._do(Doubted())

    def _end(self, reason: str, now: float) -> None:
        self.state = State.OUT
        self.doubted = False
        self.valid_until = self.start_until = float("-inf")
        self._lease, self._seen = None, None
        self._next = now
        self._do(Ended(reason))

    def _go_on(self, now: float) -> None:
        """Do what is due, unless an answer is awaited; wake when the next thing is."""
        if self.state is State.LEFT:
            return
        if not self._busy:
            if self._leaving:
                self._leave(now)
            elif self.state is State.HELD and (now >= self._next or self._stale_about):
                assert self._lease is not None
                self._stale_about = False
                self._write(replace(self._lease, about=self._row_about()))
            elif self.state is not State.HELD and now >= self._next:
                self.state = State.OUT
                self._look()
        if self.state is not State.LEFT:
            self._do(Wake(self._due()))

    def _due(self) -> float:
        times = [] if self._busy else [self._next]
        if self.state is State.HELD:
            times.append(self.valid_until if self.doubted else self.start_until)
        elif self.state is State.LEAVING:
            times.append(self._tries_until)
        return min(times, default=float("inf"))

    def _leave(self, now: float) -> None:
        """Nothing may be done under a session from when its release is on its way: others may
        have what was held before the answer is here."""
        if self.state is State.HELD:
            self._tries_until, self._next = self.valid_until, now
            self.state, self.doubted = State.LEAVING, False
            self.valid_until = self.start_until = float("-inf")
        if self.state is not State.LEAVING:
            self._left()
        elif now >= self._next:
            assert self._lease is not None
            self._write(replace(self._lease, released=True))

    def _left(self) -> None:
        self.state = State.LEFT
        self.valid_until = self.start_until = float("-inf")
        self._do(Left())

    # -- pieces -----------------------------------------------------------------------------

    def _row_about(self) -> dict[str, str]:
        seal = {"seal": self._seal} if self._seal else {}
        return {**self._about, **seal, TTL: repr(float(self._timing.ttl_s))}

    def _look(self) -> None:
        self._busy = True
        self._do(Look())

    def _write(self, lease: Lease) -> None:
        self._busy = True
        self._do(Write(lease))

    def _do(self, effect: Effect) -> None:
        self._effects.append(effect)
