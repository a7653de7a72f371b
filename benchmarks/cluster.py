"""Servers for what is published and for nodes that dial: one, or three that form a cluster."""

from __future__ import annotations

import asyncio
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from crewlet.broker.cluster import ClusterSettings, membership
from crewlet.broker.dial import Address
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.settings import Sync


class Servers:
    """`replicas` is how many of them hold each message. `urls` carry credentials."""

    def __init__(self, servers: Sequence[EmbeddedServer], urls: Sequence[str]) -> None:
        self._servers = servers
        self.urls = urls
        self.replicas = len(servers)

    @property
    def url(self) -> str:
        """As `stream.url` has it."""
        return ",".join(self.urls)

    @property
    def address(self) -> Address:
        """Of the first; the password is its own boot's."""
        return self._servers[0].address


@asynccontextmanager
async def open_servers(number: int, sync: Sync) -> AsyncIterator[Servers]:
    """1 or 3 of them, on new folders that are gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        made = (
            _cluster(Path(folder), sync)
            if number > 1
            else [EmbeddedServer(Path(folder) / "server", sync=sync)]
        )
        try:
            await asyncio.gather(*(server.start() for server in made))
            yield Servers(made, [_dialled(server) for server in made])
        finally:
            await asyncio.gather(*(server.stop() for server in made))


def _dialled(server: EmbeddedServer) -> str:
    address = server.address
    return address.servers[0].replace("//", f"//{address.user}:{address.password}@")


def _cluster(folder: Path, sync: Sync) -> list[EmbeddedServer]:
    ports, secret = _free_ports(6), secrets.token_hex(16)
    peers = tuple(f"127.0.0.1:{port}" for port in ports[:3])
    made = []
    for at in range(3):
        settings = ClusterSettings(
            name="benchmark",
            port=ports[at],
            client_port=ports[3 + at],
            peers=peers,
            secret=secret,
        )
        name = f"server-{at + 1}"
        made.append(EmbeddedServer(folder / name, sync=sync, member=membership(settings, name)))
    return made


def _free_ports(number: int) -> list[int]:
    """Free a moment ago: members have to know each other's before any of them runs."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
