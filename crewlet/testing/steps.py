"""What may befall a fleet, step by step: the words that `crewlet.testing.strategies` draws.

Two families: around one node's session (`SessionStep`), and around a fleet that shares its seats
(`FleetStep`). The steps are data. Who plays them knows the machine; none of them does anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from actors.tenure import Lease

__all__ = [
    "FLEET_STEPS",
    "SESSION_STEPS",
    "Answered",
    "Applied",
    "Closed",
    "Died",
    "FleetStep",
    "Heard",
    "Joined",
    "Labelled",
    "Opened",
    "Ordered",
    "Passed",
    "Rivalled",
    "SessionStep",
    "Stopped",
    "Turned",
    "Unheard",
]


# -- around a session ------------------------------------------------------------------------


class Passed(Struct, frozen=True):
    """Time passes, and the process is woken whenever it asked for it. Nothing is answered."""

    by_s: float


class Stopped(Struct, frozen=True):
    """The process is stopped for so long (SIGSTOP): whatever it waits for comes late."""

    by_s: float


class Applied(Struct, frozen=True):
    """The store does what was asked of it; who asked is not told yet."""


class Answered(Struct, frozen=True):
    """The answer is here, `after_s` later; what was asked is done by then, if it was not before."""

    after_s: float


class Unheard(Struct, frozen=True):
    """The answer is lost: nobody knows. `applied`: it was done nevertheless."""

    applied: bool


class Rivalled(Struct, frozen=True):
    """Somebody else writes the row: another process of that id, or, where it is `released`, a
    peer that ends a session which it believes to be silent. Epoch and revision are what the store
    makes of them: never lower than before."""

    row: Lease


SessionStep: TypeAlias = Passed | Stopped | Applied | Answered | Unheard | Rivalled

SESSION_STEPS: Final[tuple[type[SessionStep], ...]] = (
    Passed,
    Stopped,
    Applied,
    Answered,
    Unheard,
    Rivalled,
)


# -- around a fleet --------------------------------------------------------------------------


class Joined(Struct, frozen=True):
    """A node comes, or comes back, with these labels. Nothing where it is there."""

    node: str
    labels: Mapping[str, str]


class Died(Struct, frozen=True):
    """A node is gone, and so is its session: its seats are free."""

    node: str


class Closed(Struct, frozen=True):
    """A node leaves (`crewlet node drain`): it is to give up everything, in order."""

    node: str


class Opened(Struct, frozen=True):
    """It stays after all (`crewlet node undrain`)."""

    node: str


class Labelled(Struct, frozen=True):
    """Its labels are others from now on: what it holds may not fit any more."""

    node: str
    labels: Mapping[str, str]


class Ordered(Struct, frozen=True):
    """An operator sends a seat to a node (`crewlet seat move`). `seat` counts the seats that there
    are, and begins anew behind the last."""

    seat: int
    node: str


class Heard(Struct, frozen=True):
    """A node hears of every row up to now. Until it hears again it decides from these."""

    node: str


class Turned(Struct, frozen=True):
    """A node decides from what it heard, and writes what follows."""

    node: str


FleetStep: TypeAlias = Joined | Died | Closed | Opened | Labelled | Ordered | Heard | Turned

FLEET_STEPS: Final[tuple[type[FleetStep], ...]] = (
    Joined,
    Died,
    Closed,
    Opened,
    Labelled,
    Ordered,
    Heard,
    Turned,
)
