"""Mattermost's websocket: a node listens as one account and hands every post to the edge.

Nodes that listen at the same time hear the same posts: each is published under its own id, so
that the broker keeps one of them. A short loss of the connection loses nothing, because the server
keeps what it would have sent and is asked for it by the number of the last frame.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec
import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidURI, WebSocketException

from actors.ports import BrokerError, TooLarge
from crewlet.company import MattermostIntegration
from crewlet.company.secret import Secret
from crewlet.errors import CrewletError
from crewlet.events import Trace
from crewlet.sources import fields

PATH: Final = "/api/v4/websocket"
FRAME_BYTES: Final = 6 * 1024 * 1024
"""The largest frame: what a webhook's body may have."""

FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 30.0
CLOSE_S: Final = 2.0

_JSON: Final[Mapping[str, str]] = {"content-type": "application/json"}
# The library logs handshakes and frames at debug level, and with them the access token.
_SILENT: Final = logging.getLogger("crewlet.web.mattermost_socket.wire")
_SILENT.setLevel(logging.CRITICAL + 1)

log = structlog.get_logger()


class Ear(Protocol):
    """The node, as a listener sees it."""

    async def hear(
        self, vendor: str, headers: Mapping[str, str], body: bytes, trace: Trace
    ) -> bool:
        """Publish what was heard; returns once it is durable, False if it was known."""


class MattermostSocket:
    """Listens until it is stopped, whatever the server does; `first_wait_s` before the second
    try, doubled up to half a minute."""

    def __init__(
        self, url: str, token: Secret, ear: Ear, *, first_wait_s: float = FIRST_WAIT_S
    ) -> None:
        self._url = url
        self._token = token
        self._ear = ear
        self._first_wait_s = first_wait_s
        self._wait_s = first_wait_s
        self._connection_id = ""
        self._next = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        assert self._task is None, "started twice"
        self._task = asyncio.create_task(self._run(), name="mattermost-socket")

    async def stop(self) -> None:
        """Hang up. What was heard and not yet published is told again at the next start of some
        node only if the server still has it. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=CLOSE_S * 2)

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
                reason = "the server closed the connection"
            except (WebSocketException, OSError, TimeoutError) as error:
                reason = f"{type(error).__name__}: {error}"[:200]
                if isinstance(error, InvalidHandshake | InvalidURI):
                    self._forget()
            wait_s = self._waits()
            log.warning("mattermost_socket_lost", url=self._url, reason=reason, wait_s=wait_s)
            await asyncio.sleep(wait_s)

    async def _listen(self) -> None:
        async with connect(
            address(self._url, self._connection_id, self._next),
            additional_headers={"Authorization": f"Bearer {self._token.reveal()}"},
            max_size=FRAME_BYTES,
            max_queue=16,
            close_timeout=CLOSE_S,
            logger=_SILENT,
        ) as connection:
            await self._frames(connection)

    async def _frames(self, connection: ClientConnection) -> None:
        async for message in connection:
            body = message.encode() if isinstance(message, str) else message
            try:
                frame = msgspec.json.decode(body)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                log.warning("mattermost_frame_unreadable", error=type(error).__name__)
                continue
            event = fields.text(frame, "event")
            if event == "hello":
                self._began(frame)
            elif event == "posted":
                await self._hear(body)
            else:
                log.debug("mattermost_frame_left_out", frame=event[:80])
            self._count(frame)

    def _began(self, frame: Any) -> None:
        """A connection of another name is a new one: the server has nothing kept for us."""
        name = fields.name(frame, "data", "connection_id")
        resumed = bool(name) and name == self._connection_id
        self._connection_id = name
        log.info("mattermost_socket_open", url=self._url, resumed=resumed)

    def _count(self, frame: Any) -> None:
        """Only after the frame was dealt with: what is not published is asked for again."""
        self._wait_s = self._first_wait_s
        number = fields.at(frame, "seq")
        if isinstance(number, int) and not isinstance(number, bool):
            self._next = number + 1

    def _forget(self) -> None:
        """A server that refuses us is asked afresh: it may have forgotten the connection."""
        self._connection_id, self._next = "", 0

    async def _hear(self, body: bytes) -> None:
        """Publish one post, for as long as it takes: the posts behind it wait in the socket."""
        wait_s = self._first_wait_s
        while True:
            try:
                new = await self._ear.hear("mattermost", _JSON, body, Trace.joined(None))
            except TooLarge:
                log.warning("mattermost_post_too_large", size=len(body))
                return
            except (BrokerError, CrewletError, ConnectionError, TimeoutError) as error:
                if isinstance(error, CrewletError) and error.blame == "caller":
                    log.warning("mattermost_post_refused", error=error.code)
                    return
                log.warning("mattermost_post_waits", error=str(error)[:200], wait_s=wait_s)
                await asyncio.sleep(wait_s)
                wait_s = min(LONGEST_WAIT_S, wait_s * 2)
            else:
                log.debug("mattermost_post_heard", duplicate=not new)
                return

    def _waits(self) -> float:
        """The next wait, spread so that nodes do not come back all at once."""
        wait_s, self._wait_s = self._wait_s, min(LONGEST_WAIT_S, self._wait_s * 2)
        return round(wait_s * random.uniform(0.75, 1.25), 3)  # noqa: S311


def address(url: str, connection_id: str = "", following: int = 0) -> str:
    """The websocket of a server; with a connection's name, what is missing of that one."""
    parts = urlsplit(url)
    scheme = "wss" if parts.scheme == "https" else "ws"
    resume = {"connection_id": connection_id, "sequence_number": following}
    query = f"?{urlencode(resume)}" if connection_id else ""
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}{PATH}{query}"


@asynccontextmanager
async def listening(integration: MattermostIntegration | None, ear: Ear) -> AsyncIterator[None]:
    """Listen for as long as the block lasts, if the company has somebody who listens."""
    token = None if integration is None else integration.access_token
    if integration is None or not integration.url or token is None:
        yield
        return
    socket = MattermostSocket(integration.url, token, ear)
    socket.start()
    try:
        yield
    finally:
        await socket.stop()
