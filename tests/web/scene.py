"""A whole node on the twin, its web edge in front: what is posted, and which turns come of it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

from actors.system import LoopClock, run_virtual
from crewlet.broker.memory import MemoryBroker
from crewlet.company import parse_company
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.node import Node
from crewlet.sources.edge_facts import RECEIVED
from crewlet.turn import Turn
from crewlet.web import make_app

SECRET = "signing-secret-8f742231b10e8888"
SOON_S = 5.0

HEADER_OF: Mapping[str, tuple[str, str]] = {
    "github": ("x-hub-signature-256", "sha256="),
    "jira": ("x-hub-signature", "sha256="),
    "confluence": ("x-hub-signature", "sha256="),
    "plane": ("x-plane-signature", ""),
}
"""Where a vendor puts its signature of the body, and what stands before the digits."""


class Scene:
    """The node, the turns that it worked (seat, partition, bodies), and what was published."""

    def __init__(self, node: Node, client: httpx.AsyncClient) -> None:
        self.node = node
        self.client = client
        self.turns: list[tuple[str, str, str]] = []
        self.events: list[Event] = []

    async def slack(
        self,
        event: Mapping[str, Any],
        event_id: str = "Ev1",
        wait_s: float = SOON_S,
        **envelope: object,
    ) -> int:
        """Post an event of the Events API, in an envelope with these keys beside its own."""
        own = {"token": "old", "type": "event_callback", "event_id": event_id, "event": event}
        value = {**own, **envelope}
        body = json.dumps(value).encode()
        sent = self.node.edge.facts("slack")[RECEIVED].partition(".")[0]
        digest = hmac.new(SECRET.encode(), f"v0:{sent}:".encode() + body, hashlib.sha256)
        headers = {
            "x-slack-request-timestamp": sent,
            "x-slack-signature": f"v0={digest.hexdigest()}",
        }
        return await self.post("slack", body, headers, wait_s)

    async def signed(
        self, vendor: str, value: object, wait_s: float = SOON_S, **headers: str
    ) -> int:
        """Post a value as the vendor would: its signature, and these headers (`_` for `-`)."""
        body = json.dumps(value).encode()
        name, before = HEADER_OF[vendor]
        digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        named = {key.replace("_", "-"): text for key, text in headers.items()}
        return await self.post(vendor, body, {name: before + digest, **named}, wait_s)

    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str], wait_s: float = SOON_S
    ) -> int:
        sent = {"content-type": "application/json", **headers}
        response = await self.client.post(f"/webhooks/{path}", content=body, headers=sent)
        await asyncio.sleep(wait_s)
        return response.status_code

    def skips(self) -> list[str]:
        return [
            event.value("reason", str, "")
            for event in self.events
            if event.type == types.NOTIFICATION_SKIPPED
        ]

    def deliveries(self) -> int:
        """How many deliveries have their one record."""
        return sum(event.type == types.INBOUND_DELIVERY for event in self.events)


Reply = Callable[[Scene, Turn], Awaitable[None]]


def play(
    company: str,
    test: Callable[[Scene], Awaitable[None]],
    *,
    turn_s: float = 0.0,
    reply: Reply | None = None,
) -> None:
    """Run `test` beside a node of this company, whose turns take `turn_s` seconds and then make
    their `reply` to the world outside."""

    async def main() -> None:
        async def turn(given: Turn) -> str:
            bodies = "\n---\n".join(event.body for event in given.events)
            scene.turns.append((given.seat.handle, given.conversation.partition_key, bodies))
            await asyncio.sleep(turn_s)
            if reply is not None:
                await reply(scene, given)
            return "done"

        node = Node(
            parse_company(company, env={"SECRET": SECRET}),
            turn=turn,
            broker=MemoryBroker().client("n1"),
            clock=LoopClock(asyncio.get_running_loop()),
            web=False,
            admin=False,
        )
        async with node:
            transport = httpx.ASGITransport(app=make_app(node.edge))
            async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
                scene = Scene(node, client)
                node.queue.add_listener(lambda topic, event: scene.events.append(event))
                await test(scene)

    run_virtual(main)
