"""Nodes on one twin and virtual time whose company is applied anew while they run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from actors.machines.timing import Timing
from actors.system import LoopClock, run_virtual
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.settings import StreamSettings
from crewlet.company import NodeIdentity, NodeSettings, parse_company
from crewlet.events import Trace
from crewlet.node import Node
from crewlet.turn import Turn
from tests.end_to_end.harness import issue
from tests.node.operated import Operated

HEAD = "name: Company T\n"
DEV = "  - {name: Dev, handle: dev, contact: {github_login: octo-dev}}\n"
OPS = "  - {name: Ops, handle: ops, contact: {github_login: octo-ops}}\n"
QA = "  - {name: Qa, handle: qa, contact: {github_login: octo-qa}}\n"

FLEET = StreamSettings(type="nats", url="nats://nowhere")
"""Other nodes can reach the broker: a file is not put in the place of what they work by."""

Handler = Callable[[Turn], Coroutine[Any, Any, Any]]


def text(*roles: str, head: str = HEAD) -> str:
    return f"{head}roles:\n{''.join(roles)}"


FIRST = text(DEV, OPS)


class Fleet:
    """`nodes` by id; each has done `worked` turns: (node, seat, text)."""

    def __init__(
        self, stack: AsyncExitStack, handler: Handler | None, lease: Timing | None = None
    ) -> None:
        self.broker = MemoryBroker()
        self.nodes: dict[str, Operated] = {}
        self.worked: list[tuple[str, str, str]] = []
        self._stack = stack
        self._handler = handler
        self._lease = lease or Timing()

    async def add(
        self,
        id: str,
        file: str = FIRST,
        *,
        folder: Path | None = None,
        roles: tuple[str, ...] = (),
        **settings: Any,
    ) -> Operated:
        """Start a node; what it raises is raised."""
        node = Node(
            parse_company(file),
            turn=self._turn(id) if self._handler is not None else None,
            settings=NodeSettings(
                node=NodeIdentity(id=id, roles=roles), stream=FLEET, lease=self._lease
            ),
            broker=self.broker.client(id),
            clock=LoopClock(asyncio.get_running_loop()),
            web=False,
            admin=False,
            folder=folder,
            **settings,
        )
        made = Operated(await self._stack.enter_async_context(node))
        await made.desk.start()
        self._stack.push_async_callback(made.desk.stop)
        self.nodes[id] = made
        return made

    def _turn(self, id: str) -> Handler:
        async def turn(given: Turn) -> Any:
            self.worked.append((id, given.seat.handle, given.events[0].body))
            assert self._handler is not None
            return await self._handler(given)

        return turn

    async def owned(self, *handles: str) -> Mapping[str, str]:
        """Who works each of these seats, once somebody does and all nodes know."""
        async with asyncio.timeout(120):
            while True:
                views = [
                    {handle: each.node.fleet.owner_of(handle) or "" for handle in handles}
                    for each in self.nodes.values()
                ]
                if all(view == views[0] and all(view.values()) for view in views):
                    return views[0]
                await asyncio.sleep(0.1)

    def __getitem__(self, id: str) -> Operated:
        return self.nodes[id]


async def done(_: Turn) -> str:
    return "done"


def on_a_fleet(
    test: Callable[[Fleet], Coroutine[Any, Any, None]],
    *ids: str,
    handler: Handler | None = done,
    file: str = FIRST,
) -> None:
    """Run `test(fleet)` with a node for each id."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            fleet = Fleet(stack, handler)
            for id in ids:
                await fleet.add(id, file)
            await test(fleet)

    run_virtual(main)


async def assigned(node: Operated, login: str, number: int) -> None:
    """A delivery from outside that is verified already: an issue given to somebody."""
    payload = issue(number, action="assigned", assignee={"login": login})
    payload["issue"]["assignees"] = [{"login": login}]
    headers = {"X-GitHub-Event": "issues", "X-GitHub-Delivery": f"d-{number}"}
    await node.node.edge.accept("github", headers, json.dumps(payload).encode(), Trace.root())
