"""A node's place in its fleet: what its actors are told of it, and what they tell of themselves."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final, Protocol

import structlog

from actors.duty import DutySpec
from actors.fleet import FleetSpec, Opening
from actors.machines.placement import Strategy
from actors.seat import SeatSpec
from crewlet.company import Company, NodeSettings
from crewlet.node.duties import Duties
from crewlet.node.pause_watch import PauseWatch
from crewlet.node.shared_fleet import SharedFleet
from crewlet.node.view import NodeView
from crewlet.node.workshop import Workshop

SETTLE_S: Final = 1.0
"""How long a node that joins a broker of somebody else's looks around before it takes seats: of
nodes that start together none takes them all first."""

log = structlog.get_logger(__name__)


class Placed(NodeView, Protocol):
    """The node whose place this is."""

    settings: NodeSettings
    lost: bool
    pause_watch: PauseWatch


class Place:
    """`alone`: nobody else can reach the node's broker. `seal`: see `FleetSpec`."""

    def __init__(
        self,
        node: Placed,
        store: SharedFleet,
        workshop: Workshop,
        duties: Duties,
        strategy: Strategy,
        *,
        alone: bool,
        seal: str,
    ) -> None:
        self._node = node
        self._store = store
        self._workshop = workshop
        self._duties = duties
        self._strategy = strategy
        self._alone = alone
        self._seal = seal
        self._opened: tuple[Company, list[Opening]] | None = None

    def spec(self) -> FleetSpec:
        settings = self._node.settings
        return FleetSpec(
            store=self._store,
            node=settings.node.id,
            owner=f"{settings.node.id}:{secrets.token_hex(6)}",
            seats=self._openings,
            prepare=self._prepare,
            roles=settings.node.roles,
            labels=settings.node.labels,
            facts=self._node.reconcile.facts(),
            timing=settings.lease,
            strategy=self._strategy,
            seal=self._seal,
            settle_s=0.0 if self._alone else SETTLE_S,
            tell=self._on_fleet,
        )

    def _openings(self) -> list[Opening]:
        """Made once for a company: it is asked for at each pass over its seats."""
        company = self._node.company
        if self._opened is None or self._opened[0] is not company:
            seats = [Opening(seat.handle, seat.demand) for seat in company.agents()]
            self._opened = company, [*seats, *self._duties.openings()]
        return self._opened[1]

    async def _prepare(self, name: str) -> SeatSpec | DutySpec:
        return self._duties.spec(name) or await self._workshop.prepare(name)

    def _on_fleet(self, event: str, about: Mapping[str, object]) -> None:
        """Called inside the actors: it may neither wait nor raise."""
        match event:
            case "id_taken":
                log.critical("node_id_taken", node=self._node.node_id, by=about.get("owner"))
                self._node.lost = True
                self._node.stopping.set()
            case "seat_established":
                self._node.turns.arrived(str(about["handle"]))
                self._node.pause_watch.established(str(about["handle"]))
