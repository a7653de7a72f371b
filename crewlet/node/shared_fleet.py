"""The fleet from one of its nodes: what its rows say, and what operators may do to this node.

It stands between the actors and the store: what their watch hears is noted here too, so that a
question about the fleet costs nobody a question to the broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import structlog

from actors.fleet import LEAVING, ROLES, facts_of, labels_of, member_of
from actors.machines.fleet_view import FleetView as Rows
from actors.machines.fleet_view import Standing
from actors.machines.placement import Demand, why_not
from actors.machines.timing import Timing
from actors.tenure import NODE, SEAT, Heard, Lease, LeaseStore, Watch
from crewlet.company.record import is_filter
from crewlet.errors import NodeRefused
from crewlet.node.fleet import BEHIND, REVISION, LeaseRow, NodeRow

if TYPE_CHECKING:
    from crewlet.node.view import NodeView

KNOWN: Final = 20
SHOWN: Final = 64

log = structlog.get_logger(__name__)


class SharedFleet:
    """The `LeaseStore` that the actors are given, and the `FleetView` that operators ask."""

    def __init__(
        self, node: NodeView, store: LeaseStore, timing: Timing, labels: Mapping[str, str]
    ) -> None:
        self._node = node
        self._store = store
        self._rows = Rows(timing)
        self._aside = False
        self._labels = dict(labels)

    # -- what the actors ask ------------------------------------------------------------

    async def read(self, resource: str) -> Lease | None:
        return await self._store.read(resource)

    async def list(self) -> Sequence[Lease]:
        return await self._store.list()

    async def write(self, lease: Lease) -> Lease:
        return await self._store.write(lease)

    async def watch(self, heard: Heard) -> Watch:
        def noted(lease: Lease) -> None:
            self._rows.saw(lease, self._now())
            heard(lease)

        return await self._store.watch(noted)

    # -- what duties ask ----------------------------------------------------------------

    def row_of(self, resource: str) -> Lease | None:
        """The row as it was heard last; a conditional write on it shows whether it still is."""
        return self._rows.row(resource)

    def rows(self) -> Sequence[Lease]:
        """Every seat's and duty's row that was heard."""
        return self._rows.rows()

    # -- what operators ask -------------------------------------------------------------

    async def nodes(self) -> Sequence[NodeRow]:
        """Every node whose row there is, this one first; the gone ones last."""
        rows = [self._node_row(lease) for lease in self._rows.sessions()]
        own = self._node.node_id
        return sorted(rows, key=lambda row: (row.id != own, row.state == "gone", row.id))

    def _node_row(self, lease: Lease) -> NodeRow:
        own, facts = lease.node == self._node.node_id, facts_of(lease)
        revision, behind = facts.get(REVISION, ""), facts.get(BEHIND, "")
        was = "" if self._rows.is_live(lease.node, self._now()) else f"was {lease.owner}"
        if was and own and not lease.released:
            was = "the store does not confirm its session: it works nothing until it does"
        seats = len(self._rows.seats_of(lease.node, self._now()))
        running = len(self._node.turns.all_running()) if own else None
        return NodeRow(
            id=lease.node,
            state=self._state(lease, seats),
            seats=seats,
            running=running,
            roles=tuple(lease.about.get(ROLES, "").split()),
            labels=labels_of(lease),
            session=lease.epoch,
            revision=int(revision) if revision.isdecimal() else None,
            behind=behind,
            note=was or behind,
        )

    def _state(self, lease: Lease, seats: int) -> str:
        if lease.released:
            return "gone"
        if not self._rows.is_live(lease.node, self._now()):
            return "silent"
        if lease.node == self._node.node_id and self._node.stopping.is_set():
            return "leaving"
        if LEAVING in lease.about:
            return "draining" if seats else "drained"
        return "serving"

    async def leases(self) -> Sequence[LeaseRow]:
        rows = (*self._rows.rows(), *self._rows.sessions())
        found = [self._lease_row(lease) for lease in rows]
        return sorted(found, key=lambda row: row.resource)

    def _lease_row(self, lease: Lease) -> LeaseRow:
        free = lease.released or lease.preferred != lease.node
        meant = f"meant for {lease.preferred}" if lease.preferred and free else ""
        if lease.resource.startswith(NODE):
            live = self._rows.is_live(lease.node, self._now())
            state = "released" if lease.released else "held" if live else "silent"
        else:
            standing = self._rows.standing(lease.resource, self._now())
            state = "released" if lease.released else _WORDS[standing]
        return LeaseRow(
            resource=lease.resource,
            owner=lease.owner,
            epoch=lease.epoch,
            session=lease.session,
            state=state,
            note=meant,
        )

    def owner_of(self, handle: str) -> str | None:
        return self._rows.holder(SEAT + handle, self._now()) or None

    def barred(self, demand: Demand) -> Sequence[str]:
        members = [member_of(lease) for lease in self._rows.live(self._now())]
        found = [(member.id, why_not(member, demand)) for member in members]
        return [f"{id}: {why}" for id, why in found] if all(why for _, why in found) else ()

    async def move(self, handle: str, node: str) -> tuple[bool, str]:
        owner, own = self.owner_of(handle), self._node.node_id
        if owner is None:
            raise NodeRefused(f"{handle} is on no node now: `crewlet why {handle}` says why")
        moved = await self._node.runtime.move(handle, node)
        if moved.already and not self._aside:
            return False, moved.refused
        if moved.refused:
            raise NodeRefused(f"{moved.refused}; `crewlet node ls` shows who is there")
        if node == own:
            return True, f"{handle} stays: it is taken up anew when its running turn has ended"
        return True, f"{handle} goes to {node} as soon as its running turn has ended"

    async def drain(self) -> str:
        self._check_serving()
        before, self._aside = self._aside, True
        self._node.edge.draining = True
        self._node.runtime.stand_aside(on=True)
        if before:
            return "it was told before; `crewlet node ls` shows how far it is"
        own, rows = self._node.node_id, await self.nodes()
        others = [row.id for row in rows if row.state == "serving" and row.id != own]
        if not others:
            return "its seats rest once their turns have ended: nobody else is there for the mail"
        return f"its seats go to {', '.join(others[:KNOWN])} as their turns end"

    async def undrain(self) -> str:
        self._check_serving()
        if not self._aside:
            return f"{self._node.node_id} is not drained"
        self._aside = False
        self._node.edge.draining = False
        self._node.runtime.stand_aside(on=False)
        return "it takes its share of the seats again"

    async def relabel(self, changed: Mapping[str, str]) -> Mapping[str, str]:
        self._check_serving()
        for name, value in changed.items():
            if not is_filter(name):  # no placement could ask for it
                raise NodeRefused(f"{name[:SHOWN]!r} is no name: small letters, digits, '_'")
            if value and (not value.isprintable() or value != value.strip()):
                raise NodeRefused(f"the value of {name} is one line without blanks at its ends")
        labels = {**self._labels, **changed}
        self._labels = {name: value for name, value in sorted(labels.items()) if value}
        self._node.runtime.relabel(self._labels)
        return self._labels

    def _check_serving(self) -> None:
        if self._node.stopping.is_set():
            raise NodeRefused(f"{self._node.node_id} is stopping; start it again with `crewlet up`")

    def _now(self) -> float:
        return self._node.clock.monotonic()


_WORDS: Final = {Standing.HELD: "held", Standing.SILENT: "silent", Standing.FREE: "lapsed"}
