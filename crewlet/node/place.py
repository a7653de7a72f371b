"""A node's place in its fleet: what its actors are told of it, and what they tell of themselves."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Final, Protocol

import structlog

from actors.duty import DutySpec
from actors.fleet import FleetSpec, Opening
from actors.machines.signals import Hold
from actors.seat import INBOX, SeatSpec
from crewlet.company import Company, NodeSettings
from crewlet.errors import StoreUnavailable
from crewlet.node.duties import Duties
from crewlet.node.pauses import PAUSED
from crewlet.node.shared_fleet import SharedFleet
from crewlet.node.view import NodeView
from crewlet.node.workshop import Workshop
from crewlet.topics import is_handle

SETTLE_S: Final = 1.0
"""How long a node that joins a broker of somebody else's looks around before it takes seats: of
nodes that start together none takes them all first."""

log = structlog.get_logger(__name__)


class Placed(NodeView, Protocol):
    """The node whose place this is."""

    settings: NodeSettings
    lost: bool


class Place:
    """`alone`: nobody else can reach the node's broker. `seal`: see `FleetSpec`."""

    def __init__(
        self,
        node: Placed,
        store: SharedFleet,
        workshop: Workshop,
        duties: Duties,
        *,
        alone: bool,
        seal: str,
    ) -> None:
        self._node = node
        self._store = store
        self._workshop = workshop
        self._duties = duties
        self._alone = alone
        self._seal = seal
        self._opened: tuple[Company, list[Opening]] | None = None
        self._looking: set[asyncio.Future[None]] = set()

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
            case "seat_established" if is_handle(str(about["handle"])):  # a duty is no seat
                look = asyncio.ensure_future(self._look_for_a_pause(str(about["handle"])))
                self._looking.add(look)
                look.add_done_callback(self._looking.discard)

    async def _look_for_a_pause(self, handle: str) -> None:
        """One that was written while the seat was on its way here was told to nobody."""
        node = self._node
        try:
            holds = await node.pauses.holds_of(handle)
            if holds and not node.stopping.is_set():
                await node.runtime.brake(handle, INBOX, Hold(PAUSED))
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("pause_not_read", seat=handle, error=str(error))
