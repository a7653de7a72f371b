"""Verbs about the fleet: its nodes, its leases, and taking a node out of work."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from actors.admin import Caller
from actors.node import ROUTER
from crewlet.node.verbs.operation import AnyOperation, Nothing, Operation, Rows, the_node
from crewlet.node.view import NodeView


class OfNode(Struct, frozen=True, forbid_unknown_fields=True):
    node: str = ""


class Labels(Struct, frozen=True, forbid_unknown_fields=True):
    """An empty value takes the label away."""

    labels: dict[str, str]


class FleetVerbs:
    """One coroutine a verb."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        return {
            "node.ls": Operation(Nothing, self.nodes),
            "node.drain": Operation(OfNode, self.drain, target=self._named, where="node"),
            "node.undrain": Operation(OfNode, self.undrain, target=self._named, where="node"),
            "node.label": Operation(Labels, self.label, target=lambda args: self._node.node_id),
            "lease.ls": Operation(Nothing, self.leases),
            "names": Operation(Nothing, self.names),
        }

    def _named(self, args: OfNode) -> str:
        return the_node(args) or self._node.node_id

    async def nodes(self, _: Nothing, caller: Caller) -> Rows:
        for row in await self._node.fleet.nodes():
            yield row

    async def leases(self, _: Nothing, caller: Caller) -> Rows:
        for row in await self._node.fleet.leases():
            yield row

    async def drain(self, args: OfNode, caller: Caller) -> Rows:
        """Accepted, not awaited: the turn that asks may be one that the drain waits for. Who
        wants to wait for the others looks at `ps`."""
        note = await self._node.fleet.drain()
        yield {"node": self._node.node_id, "state": "draining", "note": note}

    async def undrain(self, args: OfNode, caller: Caller) -> Rows:
        note = await self._node.fleet.undrain()
        yield {"node": self._node.node_id, "state": "serving", "note": note}

    async def names(self, _: Nothing, caller: Caller) -> Rows:
        """What a shell completes: cheap, whatever the size of the company."""
        for seat in self._node.company.agents():
            yield {"kind": "seat", "name": seat.handle}
            yield {"kind": "consumer", "name": seat.handle}
        yield {"kind": "consumer", "name": ROUTER}
        for row in await self._node.fleet.nodes():
            yield {"kind": "node", "name": row.id}

    async def label(self, args: Labels, caller: Caller) -> Rows:
        labels = await self._node.fleet.relabel(args.labels)
        note = "seats come and go by it; its file has the last word at the next start"
        own, *_ = await self._node.fleet.nodes()
        yield {"node": own.id, "state": own.state, "note": note, "labels": labels}
