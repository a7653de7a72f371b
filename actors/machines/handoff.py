"""One seat on one node: claimed, established, held, let go of.

Two ways of letting go. *Voluntarily*: what runs may end, all mail in hand goes back, and the row
says that the seat is free. *Fenced*: the seat is somebody else's already, or may be; nothing is
told to the broker, and nothing is written. A teardown that fails keeps the seat: it is *undead*,
still ours, worked by nobody, tried again with each renewal.

The caller's duties: effects in their order; each answered by the input that names it. Where the
session has ended, `Fence` comes to every seat.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct

from actors.machines.signals import IllegalInput
from actors.tenure import Lease


class State(Enum):
    FREE = "free"
    CLAIMING = "claiming"
    ESTABLISHING = "establishing"
    HELD = "held"
    LEAVING = "leaving"
    UNDEAD = "undead"
    RELEASING = "releasing"
    FENCING = "fencing"


# -- inputs -------------------------------------------------------------------------------


class Take(Struct, frozen=True):
    """Claim it. `row`: as it was last seen; `died`: its last holder did not let go itself."""

    row: Lease | None
    died: bool


class Claimed(Struct, frozen=True):
    row: Lease


class NotClaimed(Struct, frozen=True):
    """Somebody was first, or nobody knows: what an unknown write did is seen on the watch."""


class Established(Struct, frozen=True):
    """Every mailbox is attached."""


class NotEstablished(Struct, frozen=True):
    """Something of it failed: it is taken down again."""


class GiveUp(Struct, frozen=True):
    """Let go voluntarily. `to`: who should have it next; `ordered`: because an operator said so."""

    reason: str
    to: str = ""
    ordered: bool = False


class Empty(Struct, frozen=True):
    """Nothing of it is attached or in hand any more."""


class NotEmpty(Struct, frozen=True):
    """The teardown did not come to its end."""


class Beat(Struct, frozen=True):
    """The session was renewed."""


class Fence(Struct, frozen=True):
    """It is not ours any more, or will not be by the time anybody hears of us."""

    reason: str


class Forsaken(Struct, frozen=True):
    """Nothing of it is left in this process."""


class Released(Struct, frozen=True):
    """The row says that it is free - or whose it is by now: not ours."""


class NotReleased(Struct, frozen=True):
    """Nobody knows what the row says."""


Input: TypeAlias = (
    Take
    | Claimed
    | NotClaimed
    | Established
    | NotEstablished
    | GiveUp
    | Empty
    | NotEmpty
    | Beat
    | Fence
    | Forsaken
    | Released
    | NotReleased
)

# -- effects ------------------------------------------------------------------------------


class WriteClaim(Struct, frozen=True):
    row: Lease | None


class Establish(Struct, frozen=True):
    """Make the seat under this row; `reclaim`: first take back what a dead holder has."""

    row: Lease
    reclaim: bool


class Drain(Struct, frozen=True):
    """Let the seat end what it runs, within the bound, and hand back the rest."""


class Forsake(Struct, frozen=True):
    """Take the seat down at once, and say nothing to the broker."""


class WriteRelease(Struct, frozen=True):
    """`mail_out`: what a holder before us left in flight was not taken back here either;
    `unprepared`: it could not be established here."""

    row: Lease
    to: str
    ordered: bool
    mail_out: bool = False
    unprepared: bool = False


class Gone(Struct, frozen=True):
    """The seat is not on this node any more. `voluntary`: it was given up in order."""

    voluntary: bool
    reason: str


class Alarm(Struct, frozen=True):
    """It has been undead for so many renewals."""

    beats: int


Effect: TypeAlias = WriteClaim | Establish | Drain | Forsake | WriteRelease | Gone | Alarm

ALARM_BEATS: Final = 20
"""Between two alarms of an undead seat (facts.md 1)."""

LOST_CLAIM: Final = "not claimed"
UNPREPARED: Final = "it could not be established"


class Handoff:
    """The machine of one seat."""

    def __init__(self) -> None:
        self.state = State.FREE
        self.row: Lease | None = None
        self.reason = ""
        self.beats = 0
        self.was_held = False
        self._reclaim = False
        self._given_up: GiveUp | None = None
        self._writing = False
        self._unprepared = False
        self._to = ""
        self._ordered = False
        self._effects: list[Effect] = []

    def step(self, given: Input) -> list[Effect]:
        """The effects of an input, in order. IllegalInput leaves the machine as it was."""
        handler = _TABLE.get((self.state, type(given)))
        if handler is None:
            if type(given) in _IGNORED:
                return []
            raise IllegalInput(f"{type(given).__name__} while {self.state.value}")
        handler(self, given)
        effects, self._effects = self._effects, []
        return effects

    # -- taking ---------------------------------------------------------------------------

    def _take(self, given: Take) -> None:
        self.state, self._reclaim = State.CLAIMING, given.died
        self.was_held, self.beats = False, 0
        self._do(WriteClaim(given.row))

    def _give_up_claim(self, given: GiveUp) -> None:
        if self._given_up is None or given.ordered:
            self._given_up = given

    def _claimed(self, given: Claimed) -> None:
        self.row = given.row
        if self._given_up is not None:
            self._give_up(self._given_up)
            return
        self.state = State.ESTABLISHING
        self._do(Establish(given.row, self._reclaim))

    def _not_claimed(self, _: NotClaimed) -> None:
        self._forget(LOST_CLAIM, voluntary=False)

    def _claimed_too_late(self, given: Claimed) -> None:
        """The session ended while the claim was under way: a row of a session that is over."""
        self._forget(self.reason, voluntary=False)

    def _fence_claim(self, given: Fence) -> None:
        self.state, self.reason = State.FENCING, given.reason

    def _established(self, _: Established) -> None:
        self.state, self.was_held = State.HELD, True

    def _not_established(self, _: NotEstablished) -> None:
        self.state, self.reason, self._unprepared = State.LEAVING, UNPREPARED, True
        self._do(Drain())

    # -- letting go in order --------------------------------------------------------------

    def _give_up(self, given: GiveUp) -> None:
        self.state, self.reason = State.LEAVING, given.reason
        self._to, self._ordered = given.to, given.ordered
        self._do(Drain())

    def _redirect(self, given: GiveUp) -> None:
        """Until its row is written an operator may name another node for it."""
        if given.ordered:
            self._to, self._ordered = given.to, True

    def _empty(self, _: Empty) -> None:
        self.state = State.RELEASING
        self._write_release()

    def _write_release(self) -> None:
        assert self.row is not None
        self._writing = True
        mail_out = self._reclaim and not self.was_held
        self._do(WriteRelease(self.row, self._to, self._ordered, mail_out, self._unprepared))

    def _not_empty(self, _: NotEmpty) -> None:
        self.state, self.beats = State.UNDEAD, 0

    def _try_again(self, _: Beat) -> None:
        self.beats += 1
        if self.beats % ALARM_BEATS == 0:
            self._do(Alarm(self.beats))
        self._do(Drain())

    def _released(self, _: Released) -> None:
        self._forget(self.reason, voluntary=True)

    def _not_released(self, _: NotReleased) -> None:
        """Said again with the next renewal, or when it is asked for: until then the row is ours
        and the seat is idle."""
        self._writing = False

    def _release_again(self, given: Beat | GiveUp) -> None:
        if isinstance(given, GiveUp):
            self._redirect(given)
        if not self._writing:
            self._write_release()

    # -- letting go at once ---------------------------------------------------------------

    def _fence(self, given: Fence) -> None:
        self.state, self.reason = State.FENCING, given.reason
        self._do(Forsake())

    def _fence_released(self, given: Fence) -> None:
        """Nothing of it is left here but the row, and that is of a session that is over."""
        self._forget(given.reason, voluntary=True)

    def _forsaken(self, _: Forsaken) -> None:
        self._forget(self.reason, voluntary=False)

    def _forget(self, reason: str, *, voluntary: bool) -> None:
        self.state, self.row, self.reason = State.FREE, None, ""
        self._to, self._ordered, self._reclaim = "", False, False
        self._given_up, self._writing, self._unprepared = None, False, False
        self._do(Gone(voluntary, reason))

    def _do(self, effect: Effect) -> None:
        self._effects.append(effect)


Handler: TypeAlias = Callable[[Handoff, Any], None]

_TABLE: Final[dict[tuple[State, type], Handler]] = {
    (State.FREE, Take): Handoff._take,
    (State.CLAIMING, Claimed): Handoff._claimed,
    (State.CLAIMING, NotClaimed): Handoff._not_claimed,
    (State.CLAIMING, GiveUp): Handoff._give_up_claim,
    (State.CLAIMING, Fence): Handoff._fence_claim,
    (State.ESTABLISHING, Established): Handoff._established,
    (State.ESTABLISHING, NotEstablished): Handoff._not_established,
    (State.ESTABLISHING, GiveUp): Handoff._give_up,
    (State.ESTABLISHING, Fence): Handoff._fence,
    (State.HELD, GiveUp): Handoff._give_up,
    (State.HELD, Fence): Handoff._fence,
    (State.LEAVING, GiveUp): Handoff._redirect,
    (State.LEAVING, Empty): Handoff._empty,
    (State.LEAVING, NotEmpty): Handoff._not_empty,
    (State.LEAVING, Fence): Handoff._fence,
    (State.UNDEAD, GiveUp): Handoff._redirect,
    (State.UNDEAD, Empty): Handoff._empty,
    (State.UNDEAD, Beat): Handoff._try_again,
    (State.UNDEAD, Fence): Handoff._fence,
    (State.RELEASING, Released): Handoff._released,
    (State.RELEASING, NotReleased): Handoff._not_released,
    (State.RELEASING, Beat): Handoff._release_again,
    (State.RELEASING, GiveUp): Handoff._release_again,
    (State.RELEASING, Fence): Handoff._fence_released,
    (State.FENCING, Forsaken): Handoff._forsaken,
    (State.FENCING, Claimed): Handoff._claimed_too_late,
    (State.FENCING, NotClaimed): Handoff._forsaken,
}

_IGNORED: Final = frozenset(
    {Beat, Fence, GiveUp, Established, NotEstablished, Empty, NotEmpty, Released, NotReleased}
)
"""What may come late, or too often, and changes nothing then."""
