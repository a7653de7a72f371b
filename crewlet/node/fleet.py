"""What a node knows of its fleet, and what operators may do to it: the face, and the fleet of
one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from actors.machines.signals import Hold, Lift
from actors.seat import INBOX
from crewlet.errors import NodeRefused

if TYPE_CHECKING:
    from crewlet.node.view import NodeView

DRAINED: Final = "drained"
"""The hold of every seat of a drained node that has nobody to give its seats to."""


class NodeRow(Struct, frozen=True, kw_only=True):
    """A node of the fleet. `state` is serving, draining, drained, leaving or gone; `seats` are
    those that it holds, `running` its turns where they are known."""

    id: str
    state: str
    seats: int
    running: int | None = None
    roles: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    session: int | None = None
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

    async def move(self, handle: str, node: str) -> str:
        """Have this seat, which this node holds, worked by `node`; a sentence about what
        happens now."""

    async def drain(self, node: str) -> str:
        """Give up the seats of `node`, which is this one, and take none, until `undrain`. The
        process stays. A sentence about what happens now."""

    async def undrain(self, node: str) -> str:
        """Take seats again."""


class FleetOfOne:
    """A node that is alone: there is nobody to give a seat to."""

    def __init__(self, node: NodeView) -> None:
        self._node = node
        self._drained = False

    async def nodes(self) -> Sequence[NodeRow]:
        node = self._node
        running = len(node.turns.all_running())
        state = "serving"
        if node.stopping.is_set():
            state = "leaving"
        elif self._drained:
            state = "draining" if running else "drained"
        seats = len(node.company.agents())
        return [NodeRow(id=node.node_id, state=state, seats=seats, running=running)]

    async def leases(self) -> Sequence[LeaseRow]:
        """A node that is alone holds the company as a whole."""
        return [LeaseRow(resource=f"node:{self._node.node_id}", owner=self._node.node_id, epoch=1)]

    def owner_of(self, handle: str) -> str | None:
        return self._node.node_id

    async def move(self, handle: str, node: str) -> str:
        if node == self._node.node_id:
            return f"{handle} is worked by {node} already"
        raise NodeRefused(
            f"there is no node {node!r} to move {handle} to: {self._node.node_id} serves this "
            "company alone; `crewlet node ls` shows who is there"
        )

    async def drain(self, node: str) -> str:
        """Nobody else is there: the seats rest here, and their mail waits."""
        self._check_serving()
        self._drained = True
        self._node.edge.draining = True
        await self._brake(Hold(DRAINED))
        return "no turn starts here, running ones may end; nobody else is there for the mail"

    async def undrain(self, node: str) -> str:
        self._check_serving()
        if not self._drained:
            return f"{node} is not drained"
        self._drained = False
        self._node.edge.draining = False
        await self._brake(Lift(DRAINED))
        return "its seats work again"

    def _check_serving(self) -> None:
        if self._node.stopping.is_set():
            raise NodeRefused(f"{self._node.node_id} is stopping; start it again with `crewlet up`")

    async def _brake(self, signal: Hold | Lift) -> None:
        agents = self._node.company.agents()
        brakes = (self._node.runtime.brake(seat.handle, INBOX, signal) for seat in agents)
        await asyncio.gather(*brakes)
