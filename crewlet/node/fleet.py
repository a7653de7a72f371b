"""What a node knows of its fleet, and what operators may do to it: the face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from actors.machines.placement import Demand

REVISION: Final = "revision"
BEHIND: Final = "behind"
"""Facts that a node's row states: the number of the revision that it works by, and of the one that
it cannot take, with the reason."""


class NodeRow(Struct, frozen=True, kw_only=True):
    """A node of the fleet. `state` is serving, draining, drained, leaving, silent or gone;
    `seats` are those that it holds, `running` its turns where they are known; `revision` is the
    one that it works by, and `behind` says which one it cannot take, and why."""

    id: str
    state: str
    seats: int
    running: int | None = None
    roles: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    session: int | None = None
    revision: int | None = None
    behind: str = ""
    note: str = ""


class LeaseRow(Struct, frozen=True, kw_only=True):
    """Who holds what: `resource` is `seat:HANDLE`, `node:ID` or `worker:DUTY`."""

    resource: str
    owner: str
    epoch: int
    session: int | None = None
    state: str = "held"
    note: str = ""


class FleetView(Protocol):
    """The fleet from one of its nodes. Acts answer as soon as they are accepted: whoever asks
    may be a turn that the act has to wait for. Each raises NodeRefused with the way out."""

    async def nodes(self) -> Sequence[NodeRow]:
        """Every node that is known, this one first."""

    async def leases(self) -> Sequence[LeaseRow]:
        """Every lease that is known, by resource."""

    def owner_of(self, handle: str) -> str | None:
        """The id of the node that works the seat; None where nobody does, or nobody knows.
        From what is known here already: no question is asked."""

    def barred(self, demand: Demand) -> Sequence[str]:
        """Why none of the nodes that are there may work what asks for this, a clause a node; empty
        where one may."""

    async def move(self, handle: str, node: str) -> tuple[bool, str]:
        """Have this seat, which this node holds, worked by `node`; whether that changes anything,
        and a sentence about what happens now. Until its running turn has ended another may be
        named."""

    async def drain(self) -> str:
        """Give up the seats of this node and take none, until `undrain`. The process stays. A
        sentence about what happens now."""

    async def undrain(self) -> str:
        """Take seats again."""

    async def relabel(self, changed: Mapping[str, str]) -> Mapping[str, str]:
        """Offer these labels beside the others from now on, until this process ends; an empty
        value takes one away. All that are offered then."""
