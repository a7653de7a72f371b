"""uvicorn's protocol on the node's own loop: no signal handlers, no process of its own, and a
stop that ends."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Final

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from crewlet.errors import NodeRefused
from crewlet.web.protocol import HEAD_BYTES, BoundedProtocol

log = structlog.get_logger()

BACKLOG: Final = 1024
KEEP_ALIVE_S: Final = 5
CANCEL_GRACE_S: Final = 1.0


class WebServer:
    """An HTTP server that starts and stops within a running loop.

    `head_s` bounds the wait for a request's head, `most` the open connections.
    """

    def __init__(self, *, head_s: float = 10.0, most: int = 1000) -> None:
        self._head_s = head_s
        self._most = most
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """The port that is served, also where 0 was asked for; 0 before the start."""
        return self._port

    async def start(self, app: ASGIApp, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen and serve. Raises NodeRefused where the address can't be had; then nothing
        is left open. A name is served on its first address, IPv4 before IPv6."""
        assert self._server is None, "started twice"
        config = _config(app)
        listener = await _bind(host, port)
        self._port = listener.getsockname()[1]
        self._state = ServerState()
        self._state.default_headers = list(config.encoded_headers)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: BoundedProtocol(config, self._state, head_s=self._head_s, most=self._most),
            sock=listener,
            backlog=BACKLOG,
        )
        log.info("web_started", host=host, port=self._port)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Stop listening, let requests end for `grace_s`, then hang up on whoever is left.

        Returns within `grace_s` and two seconds, whatever the clients do. Idempotent.
        """
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        await _ended(self._state, grace_s)
        await self._hang_up()
        log.info("web_stopped", port=self._port)

    async def _hang_up(self) -> None:
        for connection in list(self._state.connections):
            connection.transport.abort()
        await _ended(self._state, CANCEL_GRACE_S)
        for task in list(self._state.tasks):
            task.cancel()
        await _ended(self._state, CANCEL_GRACE_S)


async def _ended(state: ServerState, within_s: float) -> None:
    """Wait for the requests under way; then let the loop tell the closed connections."""
    if tasks := set(state.tasks):
        await asyncio.wait(tasks, timeout=within_s)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def _config(app: ASGIApp) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
    config.load()
    return config


async def _bind(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:  # getaddrinfo would take it modulo 65536
        raise NodeRefused(f"cannot listen on {host}:{port}: a port is between 0 and 65535")
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise NodeRefused(f"cannot listen on {host}:{port}: {error}") from None
    family, kind, protocol, _, address = min(found, key=lambda info: info[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise NodeRefused(_why(host, port, error)) from None
    return listener


def _why(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use by another process; "
            "choose another with --port or as `api.port`, or 0 for any free one"
        )
    if error.errno == errno.EACCES:
        return f"port {port} on {host} needs privileges; choose one above 1023"
    return f"cannot listen on {host}:{port}: {error}"
