"""Nodes on one twin and virtual time, asked as their socket asks them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from msgspec import Raw

from actors.admin import Caller, Refused
from actors.system import LoopClock, run_virtual
from crewlet.broker.memory import MemoryBroker
from crewlet.company import NodeIdentity, NodeSettings, parse_company
from crewlet.events import Event, decode
from crewlet.node import Node
from crewlet.node.verbs import Desk, operations_of
from crewlet.turn import Turn

COMPANY = """
name: Company T
roles:
  - {name: Boss, handle: boss, kind: human}
  - {name: Dev, handle: dev}
  - {name: Ops, handle: ops}
"""

ANN = Caller(1000, "ann")

Row = dict[str, Any]


class Operated:
    """A node and its desk."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.desk = Desk(node, operations_of(node))

    def rows(self, verb: str, /, **args: object) -> Any:
        """The answer's generator; Refused where the arguments do not fit."""
        return self.desk.verbs()[verb].start(Raw(msgspec.json.encode(args)), ANN)

    async def ask(self, verb: str, /, **args: object) -> list[Row]:
        rows = self.rows(verb, **args)
        return [msgspec.json.decode(msgspec.json.encode(row)) async for row in rows]

    async def one(self, verb: str, /, **args: object) -> Row:
        (row,) = await self.ask(verb, **args)
        return row

    async def refused(self, verb: str, /, **args: object) -> Any:
        """The failure that the verb ends with."""
        try:
            rows = await self.ask(verb, **args)
        except Refused as refused:
            return refused.failure
        raise AssertionError(f"{verb} {args} answered {rows}")

    async def recorded(self, type: str) -> list[Event]:
        """The events of this type so far."""
        await self.node.queue.flush(5)
        found = [decode(body) for _, body in await self.node.broker.recent("crewlet.events.>", 999)]
        return [event for event in found if event.type == type]


Test = Callable[..., Coroutine[Any, Any, None]]


def on_nodes(
    test: Test,
    *ids: str,
    turn: Callable[[Turn], Coroutine[Any, Any, Any]] | None = None,
    company: str = COMPANY,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Run `test(node, ...)` with one operated node for each id, on one broker."""

    async def quiet(_: Turn) -> str:
        return "done"

    async def main() -> None:
        broker = MemoryBroker()
        async with AsyncExitStack() as stack:
            nodes = []
            for id in ids or ("n1",):
                node = Node(
                    parse_company(company),
                    turn=turn or quiet,
                    settings=NodeSettings(node=NodeIdentity(id=id, labels=dict(labels or {}))),
                    broker=broker.client(id),
                    clock=LoopClock(asyncio.get_running_loop()),
                    web=False,
                    admin=False,
                )
                operated = Operated(await stack.enter_async_context(node))
                await operated.desk.start()
                stack.push_async_callback(operated.desk.stop)
                nodes.append(operated)
            await settled(nodes)
            await test(*nodes)

    run_virtual(main)


async def settled(nodes: list[Operated]) -> None:
    """Until every seat has an owner that works it, as all nodes see it, and the shares are even:
    nothing moves any more by itself."""
    async with asyncio.timeout(120):
        while True:
            owners = [
                {seat: each.node.fleet.owner_of(seat) for seat in ("dev", "ops")} for each in nodes
            ]
            even = len(set(owners[0].values())) == min(len(nodes), len(owners[0]))
            agreed = even and all(one == owners[0] and all(one.values()) for one in owners)
            if agreed and all([await attached(nodes, *pair) for pair in owners[0].items()]):
                return
            await asyncio.sleep(0.1)


async def attached(nodes: list[Operated], seat: str, owner: str | None) -> bool:
    for each in nodes:
        if each.node.node_id == owner:
            described = await each.node.runtime.describe(seat)
            return described is not None and all(box.attached for box in described.boxes)
    return False
