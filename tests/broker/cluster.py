"""Three embedded brokers on the loopback that form one."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from actors.ports import Unavailable
from crewlet.broker.cluster import ClusterSettings, membership
from crewlet.broker.dial import Address
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.tls import TlsSettings

T = TypeVar("T")

SECRET = "a-secret-that-all-members-share"
FORMS_S = 60.0


def free_ports(number: int) -> list[int]:
    """Free a moment ago: members have to know each other's before any of them runs."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Cluster:
    """The members `node-1` to `node-3`, their folders below `folder`; `signed` makes what each
    proves itself with, and by `leaf_secret` they take leaves."""

    def __init__(
        self,
        folder: Path,
        signed: Callable[[str], TlsSettings] | None = None,
        leaf_secret: str = "",
    ) -> None:
        ports = free_ports(9)
        self.folder = folder
        self.peers = tuple(f"127.0.0.1:{port}" for port in ports[:3])
        self.client_ports = ports[3:6]
        self.leaf_ports = ports[6:]
        self.leaf_secret = leaf_secret
        self.signed = signed
        self.servers = [self.server(f"node-{at + 1}", at) for at in range(3)]

    def server(self, name: str, at: int) -> EmbeddedServer:
        port = int(self.peers[at].rpartition(":")[2])
        leaf_port = self.leaf_ports[at] if self.leaf_secret else 0
        return self.other(name, port, SECRET, self.client_ports[at], leaf_port)

    def other(
        self, name: str, port: int, secret: str, client_port: int = 0, leaf_port: int = 0
    ) -> EmbeddedServer:
        """Somebody who knows where the members are."""
        settings = ClusterSettings(
            name="test",
            port=port,
            client_port=client_port,
            peers=self.peers,
            secret=secret,
            leaf_port=leaf_port,
            leaf_secret=self.leaf_secret,
            tls=self.signed(name) if self.signed is not None else None,
        )
        member = membership(settings, name)
        return EmbeddedServer(self.folder / name, sync="interval", member=member)

    async def start(self) -> None:
        await asyncio.gather(*(server.start() for server in self.servers))

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self.servers))

    def client(self, at: int) -> JetStreamBroker:
        """The node's own client, of its own server."""
        return client_of(self.servers[at], f"node-{at + 1}")

    async def leader_of(self, client: JetStreamBroker, stream: str) -> int:
        info = await client._api.call(f"STREAM.INFO.{stream}")
        return int(info["cluster"]["leader"].removeprefix("node-")) - 1

    def kill(self, at: int) -> None:
        """As kill -9 does; its supervisor starts another one."""
        pid = self.servers[at].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)


def client_of(server: EmbeddedServer, name: str, *, patience_s: float = FORMS_S) -> JetStreamBroker:
    address = server.address
    return JetStreamBroker(
        Address(address.servers, name=name, user=address.user, password=address.password),
        replicas=3,
        patience_s=patience_s,
    )


async def stop_all(clients: Sequence[JetStreamBroker]) -> None:
    await asyncio.gather(*(client.stop() for client in clients))


async def answered(ask: Callable[[], Awaitable[T]], within_s: float = 40.0) -> T:
    """Ask until the broker answers: whatever is asked while its members vote may be unknown."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                return await ask()
            except Unavailable:
                await asyncio.sleep(0.05)
