"""What a node is told of the fleet it joins, and what its supervisors say to one another."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from actors.duty import DutySpec
from actors.machines.placement import Demand, Member, Strategy, fair_shares
from actors.machines.timing import Timing
from actors.seat import SeatSpec
from actors.tenure import Lease, LeaseStore

LEAVING: Final = "leaving"
ROLES: Final = "roles"
LABEL: Final = "label:"
FACT: Final = "fact:"


class Opening(Struct, frozen=True):
    """A seat of the company, or a duty (`worker:NAME`) of the fleet, and where it may be
    worked."""

    handle: str
    demand: Demand = Demand()


Prepare = Callable[[str], Coroutine[Any, Any, SeatSpec | DutySpec]]
"""Everything a seat needs before its mailboxes are attached, or what a duty does. What it raises,
the seat is given up with, and tried again a TTL later."""

Tell = Callable[[str, Mapping[str, object]], None]
"""Called with what happened to the fleet as this node sees it: `seats_unplaceable`,
`seat_established`, `seat_released`, `seat_lost`, `seat_undead`."""


def _silent(event: str, about: Mapping[str, object]) -> None:
    """Nobody listens."""


class FleetSpec(Struct, frozen=True, kw_only=True):
    """One node's place in a fleet.

    `owner` is this process's incarnation. `seats` are those of the company as it is now; None
    where that cannot be read, and then nothing is moved. `facts`: what else the node says of
    itself in its row, for people and for other nodes to read. `settle_s`: how long a node that
    joins looks around before it takes what nobody has. `seal`: see `SessionMachine`.
    """

    store: LeaseStore
    node: str
    owner: str
    seats: Callable[[], Sequence[Opening] | None]
    prepare: Prepare
    roles: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    timing: Timing = field(default_factory=Timing)
    strategy: Strategy = fair_shares
    seal: str = ""
    settle_s: float = 0.0
    shed_limit: int = 2
    tell: Tell = _silent

    def about(
        self, *, leaving: bool, labels: Mapping[str, str], facts: Mapping[str, str]
    ) -> dict[str, str]:
        """The row of this node's session; labels and facts may have changed since it joined."""
        offered = {LABEL + name: value for name, value in sorted(labels.items())}
        roles = {ROLES: " ".join(self.roles)} if self.roles else {}
        said = {FACT + name: value for name, value in sorted(facts.items())}
        return {**offered, **said, **roles, **({LEAVING: "1"} if leaving else {})}


def member_of(lease: Lease) -> Member:
    """The node of a session. One of no stated role has all of them."""
    roles = tuple(lease.about.get(ROLES, "").split())
    return Member(lease.node, labels_of(lease), LEAVING not in lease.about, roles)


def labels_of(lease: Lease) -> dict[str, str]:
    """The labels that a node's row states."""
    stated = lease.about.items()
    return {name.removeprefix(LABEL): value for name, value in stated if name.startswith(LABEL)}


def facts_of(lease: Lease) -> dict[str, str]:
    """What else a node's row states of it."""
    stated = lease.about.items()
    return {name.removeprefix(FACT): value for name, value in stated if name.startswith(FACT)}
