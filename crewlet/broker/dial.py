"""Reaching a server, and leaving it: the part of nats-py that is used as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog
from msgspec import Struct
from nats import errors as nats_errors
from nats.aio.client import Client, Server

from actors.ports import Unavailable
from crewlet.broker.quick import QuickParser
from crewlet.errors import BrokerRefused

log = structlog.get_logger(__name__)

Hook = Callable[[], Awaitable[None]]

RECORD_BYTES: Final = 8 * 1024 * 1024
"""The largest body of a message: the contract's record size."""

HEADROOM_BYTES: Final = 64 * 1024
"""What headers may add to a body, those of a dead letter included."""

PENDING_BYTES: Final = 64 * 1024 * 1024
"""What may wait for a stalled or absent server before sending is refused."""

OLDEST: Final = (2, 11)
"""The first with batched direct reads; 2.15 is what was measured."""

RECONNECT_S: Final = (0.1, 0.2)
CONNECT_S: Final = 2

PING_S: Final = 5
"""A server that is frozen, or behind a dead link, is noticed after three of these."""


class Address(Struct, frozen=True):
    """Whom to dial, as what. The secret goes nowhere but into the connection. `domain` is that of
    the JetStream behind a server that has none of its own (crewlet/broker/domain.py)."""

    servers: tuple[str, ...]
    name: str = "crewlet"
    user: str | None = None
    password: str | None = None
    domain: str = ""

    def __repr__(self) -> str:
        return f"Address(name={self.name!r})"


class Hooks(Struct, frozen=True):
    """What is called when a connection is lost, came back, or was given up by nats-py."""

    down: Hook
    up: Hook
    closed: Hook


async def dial(address: Address, hooks: Hooks, wait_s: float) -> Client:
    """A connected client that reconnects for ever.

    Unavailable when no server could be reached within `wait_s`; BrokerRefused where one
    turned us away, or could not carry our records.
    """
    client = Client()
    client._ps = QuickParser(client)
    # Without allow_reconnect nats-py raises the server's first refusal instead of repeating it;
    # a server that is not there is dialed again until the deadline either way.
    dialing = asyncio.create_task(client.connect(allow_reconnect=False, **_options(address, hooks)))
    try:
        await asyncio.wait({dialing}, timeout=wait_s)
        if not dialing.done():
            raise Unavailable(f"no server of the broker could be reached within {wait_s:.0f} s")
        error = dialing.exception()
        if error is not None:
            raise _refusal(error)
        _check_server(client)
    except BaseException:
        dialing.cancel()
        await hang_up(client)
        raise
    client.options["allow_reconnect"] = True
    return client


async def hang_up(client: Client) -> None:
    """Close, in bounded time, whatever state the client is in. Its hooks are not called."""
    client._closed_cb = client._disconnected_cb = None
    closing = asyncio.create_task(client.close())
    await asyncio.wait({closing}, timeout=2)
    if not closing.done():
        closing.cancel()
    elif closing.exception() is not None:
        log.debug("broker_close_failed", error=type(closing.exception()).__name__)
    if client._transport is not None:
        with contextlib.suppress(Exception):
            client._transport.close()  # type: ignore[no-untyped-call]


def _options(address: Address, hooks: Hooks) -> dict[str, Any]:
    options: dict[str, Any] = {
        "servers": list(address.servers),
        "name": address.name,
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": RECONNECT_S[0],
        "reconnect_to_server_handler": _next_server,
        "connect_timeout": CONNECT_S,
        "ping_interval": PING_S,
        "max_outstanding_pings": 2,
        "pending_size": 2 * PENDING_BYTES,
        "error_cb": _heard_error,
        "disconnected_cb": hooks.down,
        "reconnected_cb": hooks.up,
        "closed_cb": hooks.closed,
    }
    if address.user is not None:
        options |= {"user": address.user, "password": address.password}
    return options


def _next_server(servers: list[Server], _info: dict[str, Any]) -> tuple[Server | None, float]:
    """The one that failed least, after a wait that spreads a fleet's return."""
    wait_s = random.uniform(*RECONNECT_S)  # noqa: S311
    return min(servers, key=lambda server: server.reconnects), wait_s


async def _heard_error(error: Exception) -> None:
    log.debug("broker_error", error=f"{type(error).__name__}: {error}")


def _check_server(client: Client) -> None:
    version = client.connected_server_version
    if (version.major, version.minor) < OLDEST:
        raise BrokerRefused(
            f"the server is nats-server {version.major}.{version.minor} and "
            f"{OLDEST[0]}.{OLDEST[1]} or later is needed"
        )
    if client.max_payload < RECORD_BYTES:
        raise BrokerRefused(
            f"the server's max_payload is {client.max_payload} bytes and a record may have "
            f"{RECORD_BYTES}: set max_payload to {RECORD_BYTES + 4 * HEADROOM_BYTES} in the "
            "server's configuration"
        )


def _refusal(error: BaseException) -> Exception:
    if isinstance(error, nats_errors.Error) and "uthorization" in str(error):
        return BrokerRefused("the server refused our credentials: check those in stream.url")
    return Unavailable(f"the broker could not be reached ({type(error).__name__})")
