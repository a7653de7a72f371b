"""What those who look at a node and ask things of it may see of it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from actors.runtime import SeatRuntime
from crewlet.broker.port import CompanyBroker
from crewlet.company import Company
from crewlet.inbound.ledger import Ledger
from crewlet.inbound.running import Turns
from crewlet.node.edge import WebhookEdge
from crewlet.queue import Published, Publisher


class NodeView(Protocol):
    """A running node, as its verbs know it; crewlet.node.Node is one."""

    company: Company
    broker: CompanyBroker
    queue: Publisher
    ledger: Ledger
    turns: Turns
    runtime: SeatRuntime
    edge: WebhookEdge
    stopping: asyncio.Event

    @property
    def node_id(self) -> str: ...

    @property
    def url(self) -> str: ...

    async def send(self, handle: str, text: str, *, sender: str = "") -> Published: ...
