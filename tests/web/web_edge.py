"""A node for the web tests: a fake edge, a served app, signed deliveries, raw sockets."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import httpx
import msgspec

from crewlet.events import Trace
from crewlet.sources.edge_facts import RECEIVED
from crewlet.web import Limits, WebServer, make_app

SECRET = b"it is a secret to everybody"


class FakeEdge:
    """Keeps what it accepts; `gate` holds accept back, `error` makes it raise."""

    def __init__(self) -> None:
        self.draining = False
        self.ready = True
        self.secrets: dict[str, bytes] = {"github": SECRET}
        self.beside: dict[str, str] = {}
        self.accepted: list[tuple[str, dict[str, str], bytes, Trace]] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0

    def secret(self, vendor: str) -> bytes | None:
        return self.secrets.get(vendor)

    def facts(self, vendor: str) -> Mapping[str, str]:
        return {RECEIVED: f"{time.time():.3f}", **self.beside}

    async def accept(
        self, vendor: str, headers: Mapping[str, str], body: bytes, trace: Trace
    ) -> bool:
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        if self.error is not None:
            raise self.error
        key = headers.get("x-github-delivery")
        known = any(before.get("x-github-delivery") == key for _, before, _, _ in self.accepted)
        self.accepted.append((vendor, dict(headers), body, trace))
        return not known


class Node:
    """A served app and a client of it."""

    def __init__(self, edge: FakeEdge, server: WebServer, client: httpx.AsyncClient) -> None:
        self.edge = edge
        self.server = server
        self.client = client

    async def post(self, body: bytes, **headers: str) -> httpx.Response:
        """A signed delivery; a header given as '' is left out, `_` stands for `-`."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        merged = {**signed(body), **given}
        return await self.client.post(
            "/webhooks/github", content=body, headers={k: v for k, v in merged.items() if v}
        )

    async def raw(self, data: bytes) -> bytes:
        """Everything that the server answers to these bytes until it closes."""
        reader, writer = await self.connect()
        writer.write(data)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return answer

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port)


@asynccontextmanager
async def node(
    limits: Limits | None = None, *, head_s: float = 10.0, most: int = 1000
) -> AsyncIterator[Node]:
    edge, server = FakeEdge(), WebServer(head_s=head_s, most=most)
    await server.start(make_app(edge, limits or Limits()), port=0)
    try:
        base = f"http://127.0.0.1:{server.port}"
        async with httpx.AsyncClient(base_url=base, timeout=20) as client:
            yield Node(edge, server, client)
    finally:
        edge.gate.set()
        await server.stop(0.2)


def signature(body: bytes, secret: bytes = SECRET) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def signed(body: bytes, delivery: str = "d-1") -> dict[str, str]:
    return {
        "content-type": "application/json",
        "x-github-event": "issues",
        "x-github-delivery": delivery,
        "x-hub-signature-256": signature(body),
    }


def head(body: bytes, *extra: str) -> bytes:
    """A signed request's head; `extra` lines say how long the body claims to be."""
    lines = ["POST /webhooks/github HTTP/1.1", "host: node"]
    lines += [f"{name}: {value}" for name, value in signed(body).items()]
    return "\r\n".join([*lines, *extra]).encode() + b"\r\n\r\n"


def parsed(response: httpx.Response) -> dict[str, str]:
    assert response.headers["content-type"] == "application/json"
    return msgspec.json.decode(response.content, type=dict[str, str])


async def until(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Poll with a deadline."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)
