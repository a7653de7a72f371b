"""What the supervisors of a fleet's seats say to one another, and are asked from outside."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from actors.tenure import Lease


class TakeSeat(Struct, frozen=True):
    """Claim a seat that nobody has. `row`: as it was seen; `died`: its last holder did not let
    go itself, so that what it had in flight is still out."""

    handle: str
    row: Lease | None
    died: bool


class GiveUpSeat(Struct, frozen=True):
    """Let go of a seat in order; `to` should have it next."""

    handle: str
    reason: str
    to: str = ""
    ordered: bool = False


class SeatThere(Struct, frozen=True):
    """Its mailboxes are attached here."""

    handle: str


class SeatGone(Struct, frozen=True):
    """A seat that was to be taken, or was ours, is not. `outrun`: a revision of its row that is
    known not to be the last: what is written on that one is lost. -1: none is known."""

    handle: str
    reason: str
    voluntary: bool
    outrun: int = -1


class SeatWanted(Struct, frozen=True):
    """Mail waits for a seat of a node that leaves: let go of it before the others."""

    handle: str


class DrainSeats(Struct, frozen=True):
    """Give up every seat, each as soon as its turn has ended; answered by `SeatsDrained` within
    `bound_s` and a moment. Those that are worked are let go of as placement says, but all of them
    by three quarters of that time."""

    bound_s: float


class SeatsDrained(Struct, frozen=True):
    """`cut`: conversations whose handler was not waited for, per seat; `stuck`: seats that could
    not be let go of."""

    cut: tuple[tuple[str, str], ...]
    stuck: tuple[str, ...]


class WhereIsSeat(Struct, frozen=True):
    """Answered by the seat's address, or None where it is not on this node."""

    handle: str


# -- to placement, and its answers -------------------------------------------------------


class WatchFleet(Struct, frozen=True):
    """Hear the rows from now on."""


class AwaitSettled(Struct, frozen=True):
    """Answered by `Settled` once everything that this node took at first is established."""


class Settled(Struct, frozen=True):
    """So many seats are worked here."""

    seats: int


class StopTaking(Struct, frozen=True):
    """This node leaves (`on`), or stays after all."""

    on: bool


class NewLabels(Struct, frozen=True):
    """What this node offers from now on."""

    labels: Mapping[str, str]


class LookAgain(Struct, frozen=True):
    """The company may have other seats than before: do not wait for the next sweep."""


class MoveSeat(Struct, frozen=True):
    """An operator sends a seat of this node to another; answered by `Moved`."""

    handle: str
    to: str


class Moved(Struct, frozen=True):
    """`refused` says why it was not; empty where it is on its way. `already`: it is there, and
    stays."""

    refused: str = ""
    already: bool = False
