"""Mattermost's websocket against a small server of our own that speaks it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from structlog.testing import capture_logs
from web_edge import until
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from actors.ports import TooLarge, Unavailable
from crewlet import sources
from crewlet.broker.memory import MemoryBroker
from crewlet.company import MattermostIntegration, parse_company
from crewlet.company.secret import Secret
from crewlet.events import Trace
from crewlet.node import Node
from crewlet.turn import Turn
from crewlet.web.mattermost_socket import MattermostSocket, address, listening

TOKEN = "access-token-4xp9fdt77pncbef59f4k"


def posted(seq: int, post_id: str) -> str:
    post = {"id": post_id, "channel_id": "c1", "user_id": "u1", "message": "hi", "type": ""}
    data = {"post": json.dumps(post), "channel_type": "O", "channel_name": "town"}
    return json.dumps({"event": "posted", "data": data, "broadcast": {}, "seq": seq})


class Chat:
    """A server that tells what it is given, and remembers who asked for what."""

    def __init__(self) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.paths: list[str] = []
        self.refuse = 0
        self.connected: list[ServerConnection] = []
        self.backlog: list[str] = []

    async def serve(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        parts = urlsplit(connection.request.path)
        self.paths.append(parts.path)
        self.asked.append(parse_qs(parts.query))
        self.connected.append(connection)
        if not parse_qs(parts.query):
            hello = {"event": "hello", "data": {"connection_id": "conn-1"}, "seq": 0}
            await connection.send(json.dumps(hello))
        for frame in self.backlog:
            await connection.send(frame)
        self.backlog.clear()
        await connection.wait_closed()

    def check(self, connection: ServerConnection, request: Request) -> Response | None:
        if self.refuse:
            self.refuse -= 1
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "later\n")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return connection.respond(HTTPStatus.UNAUTHORIZED, "who?\n")
        return None

    async def tell(self, *frames: str) -> None:
        for frame in frames:
            await self.connected[-1].send(frame)


class Ear:
    """Keeps what it hears; `faults` are raised first."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.faults: list[Exception] = []

    async def hear(
        self, vendor: str, headers: Mapping[str, str], body: bytes, trace: Trace
    ) -> bool:
        if self.faults:
            raise self.faults.pop(0)
        assert vendor == "mattermost"
        known = body in self.heard
        self.heard.append(body)
        return not known

    @property
    def keys(self) -> list[str]:
        return [sources.delivery_key("mattermost", {}, body) for body in self.heard]


Play = Callable[[Chat, Ear, str], Awaitable[None]]


@asynccontextmanager
async def chat_server(chat: Chat) -> AsyncIterator[str]:
    server: Server
    async with serve(chat.serve, "127.0.0.1", 0, process_request=chat.check) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}"


def play(scene: Play, *, token: str = TOKEN, refuse: int = 0) -> None:
    async def run() -> None:
        chat, ear = Chat(), Ear()
        chat.refuse = refuse
        async with chat_server(chat) as url:
            socket = MattermostSocket(url, Secret(token), ear, first_wait_s=0.02)
            socket.start()
            try:
                await scene(chat, ear, url)
            finally:
                await socket.stop()

    asyncio.run(run())


def test_a_post_is_handed_to_the_edge_and_reads_as_a_notification() -> None:
    async def scene(chat: Chat, ear: Ear, url: str) -> None:
        await until(lambda: len(chat.connected) == 1)
        await chat.tell(posted(1, "p1"))
        await until(lambda: len(ear.heard) == 1)
        [read] = sources.parse("mattermost", {"content-type": "application/json"}, ear.heard[0])
        assert isinstance(read, sources.Notification)
        assert (read.partition_key, ear.keys) == ("mattermost:c1:p1", ["p1"])
        assert chat.paths == ["/api/v4/websocket"]

    play(scene)


@pytest.mark.certifies(128)
def test_only_posts_are_handed_on() -> None:
    async def scene(chat: Chat, ear: Ear, url: str) -> None:
        await until(lambda: len(chat.connected) == 1)
        await chat.tell(
            json.dumps({"event": "typing", "data": {}, "seq": 1}),
            json.dumps({"status": "OK", "seq_reply": 1}),
            "no json",
            "[" * 5000,
            "[1]",
            json.dumps({"event": 7, "seq": "x"}),
            posted(2, "p2"),
        )
        await until(lambda: bool(ear.heard))
        assert ear.keys == ["p2"]

    play(scene)


def test_after_a_loss_it_asks_for_what_it_missed() -> None:
    async def scene(chat: Chat, ear: Ear, url: str) -> None:
        await until(lambda: len(chat.connected) == 1)
        await chat.tell(posted(1, "p1"), posted(2, "p2"))
        await until(lambda: len(ear.heard) == 2)
        chat.backlog = [posted(3, "p3")]
        await chat.connected[0].close()
        await until(lambda: len(ear.heard) == 3)
        assert chat.asked[1] == {"connection_id": ["conn-1"], "sequence_number": ["3"]}
        assert ear.keys == ["p1", "p2", "p3"]

    play(scene)


def test_a_server_that_refuses_is_asked_again_and_afresh() -> None:
    async def scene(chat: Chat, ear: Ear, url: str) -> None:
        await until(lambda: len(chat.connected) == 1)
        assert chat.asked == [{}]

    play(scene, refuse=3)


@pytest.mark.parametrize("fault", [Unavailable("away"), TimeoutError(), ConnectionError()])
def test_a_post_waits_for_the_broker_and_the_order_stays(fault: Exception) -> None:
    async def scene(chat: Chat, ear: Ear, url: str) -> None:
        ear.faults = [fault, fault]
        await until(lambda: len(chat.connected) == 1)
        await chat.tell(posted(1, "p1"), posted(2, "p2"))
        await until(lambda: len(ear.heard) == 2)
        assert ear.keys == ["p1", "p2"]

    play(scene)


def test_a_post_that_is_too_large_is_left_out() -> None:
    async def scene(chat: Chat, ear: Ear, url: str) -> None:
        ear.faults = [TooLarge("9 MiB")]
        await until(lambda: len(chat.connected) == 1)
        await chat.tell(posted(1, "p1"), posted(2, "p2"))
        await until(lambda: len(ear.heard) == 1)
        assert ear.keys == ["p2"]

    play(scene)


@pytest.mark.certifies(130)
def test_two_that_listen_hand_on_the_same_post_under_the_same_id() -> None:
    async def run() -> None:
        chat, ear = Chat(), Ear()
        async with chat_server(chat) as url:
            both = [MattermostSocket(url, Secret(TOKEN), ear) for _ in range(2)]
            for socket in both:
                socket.start()
            await until(lambda: len(chat.connected) == 2)
            for connection in chat.connected:
                await connection.send(posted(1, "p1"))
            await until(lambda: len(ear.heard) == 2)
            assert ear.keys == ["p1", "p1"]
            for socket in both:
                await socket.stop()
                await socket.stop()

    asyncio.run(run())


@pytest.mark.parametrize("token", [TOKEN, "a-wrong-token-that-is-secret-too"])
def test_the_token_is_in_no_log(token: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(chat: Chat, ear: Ear, url: str) -> None:
        if token == TOKEN:
            await until(lambda: len(chat.connected) == 1)
            await chat.connected[0].close()
        await until(lambda: any(line["event"] == "mattermost_socket_lost" for line in lines))

    lines: list[Any]
    with caplog.at_level(logging.DEBUG), capture_logs() as lines:
        play(scene, token=token)
    assert token not in repr(lines)
    mine = [record for record in caplog.records if record.name.startswith("crewlet")]
    assert token not in repr([record.getMessage() for record in mine])


@pytest.mark.parametrize(
    ("url", "socket"),
    [
        ("https://chat.octo.example", "wss://chat.octo.example/api/v4/websocket"),
        ("http://chat.octo.example:8065/", "ws://chat.octo.example:8065/api/v4/websocket"),
        ("https://octo.example/chat/", "wss://octo.example/chat/api/v4/websocket"),
    ],
)
def test_the_address_of_the_socket(url: str, socket: str) -> None:
    assert address(url) == socket
    assert address(url, "c 1", 7) == f"{socket}?connection_id=c+1&sequence_number=7"


@pytest.mark.parametrize("integration", [None, MattermostIntegration(secret=Secret("hook only"))])
def test_a_company_without_a_listener_dials_nobody(
    integration: MattermostIntegration | None,
) -> None:
    async def run() -> None:
        async with listening(integration, Ear()):
            assert not [t for t in asyncio.all_tasks() if t.get_name() == "mattermost-socket"]

    asyncio.run(run())


def test_a_company_with_one_listens_for_as_long_as_the_node_runs() -> None:
    async def run() -> None:
        chat = Chat()
        async with chat_server(chat) as url:
            given = MattermostIntegration(url=url, access_token=Secret(TOKEN))
            async with listening(given, Ear()):
                await until(lambda: len(chat.connected) == 1)
            assert not [t for t in asyncio.all_tasks() if t.get_name() == "mattermost-socket"]

    asyncio.run(run())


COMPANY = """
name: Company M
roles: [{name: Dev, handle: dev, contact: {mattermost_user_id: dev1}}]
integrations: {mattermost: {url: %s, access_token: "${TOKEN}"}}
"""


@pytest.mark.certifies(130)
def test_a_node_that_listens_wakes_the_seat_that_a_post_mentions_once() -> None:
    worked: list[str] = []

    async def turn(given: Turn) -> str:
        worked.extend(event.body for event in given.events)
        return "done"

    def listener(url: str) -> Node:
        company = parse_company(COMPANY % url, env={"TOKEN": TOKEN})
        broker = MemoryBroker().client("n1")
        return Node(company, turn=turn, broker=broker, web=False, admin=False)

    async def run() -> None:
        chat = Chat()
        async with chat_server(chat) as url, listener(url) as node:
            await until(lambda: len(chat.connected) == 1)
            post = {"id": "p1", "channel_id": "c1", "user_id": "u1", "message": "hi @dev"}
            data = {"post": json.dumps({**post, "type": ""}), "mentions": '["dev1"]'}
            frame = json.dumps({"event": "posted", "data": data, "seq": 1})
            await chat.tell(frame)
            await until(lambda: worked == ["hi @dev"])
            again = await node.edge.hear("mattermost", {}, frame.encode(), Trace.joined(None))
            assert not again  # what another node would have heard
        assert worked == ["hi @dev"]

    asyncio.run(run())
