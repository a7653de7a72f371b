"""What those who look at a node and ask things of it may see of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from actors.ports import Clock, Consumed
from actors.runtime import SeatRuntime
from crewlet.a2a.channels import Channels
from crewlet.broker.port import CompanyBroker
from crewlet.company import Company
from crewlet.inbound.ledger import Ledger
from crewlet.inbound.outages import Outages
from crewlet.inbound.running import Turns
from crewlet.node.edge import WebhookEdge
from crewlet.node.fleet import FleetView
from crewlet.node.pauses import Pauses
from crewlet.node.reconcile import Reconcile
from crewlet.queue import Published, Publisher
from crewlet.runs.runs import Runs


class NodeView(Protocol):
    """A running node, as its verbs know it; crewlet.node.Node is one."""

    company: Company
    broker: CompanyBroker
    queue: Publisher
    ledger: Ledger
    turns: Turns
    outages: Outages
    runtime: SeatRuntime
    edge: WebhookEdge
    fleet: FleetView
    pauses: Pauses
    runs: Runs
    channels: Channels
    reconcile: Reconcile
    clock: Clock
    stopping: asyncio.Event

    @property
    def node_id(self) -> str: ...

    @property
    def url(self) -> str: ...

    async def send(
        self, handle: str, text: str, *, sender: str = "", within_s: float = ...
    ) -> Published: ...

    def consumed(self, handle: str, box: str) -> Consumed:
        """What is done here with the mail of one of a seat's boxes."""

    async def holds_of(self, handle: str) -> Sequence[str]:
        """The holds that the seat's inbox is taken up with."""
