"""Members that take leaves, and leaves of them: all servers are on the loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from msgspec.structs import replace

from crewlet.broker.cluster import ClusterSettings, membership
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.leaf import LeafSettings
from crewlet.broker.opening import LeafBroker, open_broker
from crewlet.broker.settings import StreamSettings
from crewlet.broker.tls import TlsSettings
from tests.broker.cluster import FORMS_S, SECRET, free_ports
from tests.broker.real import until

LEAF_SECRET = "a-secret-that-only-leaves-have"


class Hub:
    """One member, a cluster of one; it keeps its ports over a restart."""

    def __init__(
        self, folder: Path, *, leaves: bool = True, tls: TlsSettings | None = None
    ) -> None:
        self.folder = folder
        self.port, self.leaf_port = free_ports(2)
        self.tls = tls
        self.server = self.made(leaves=leaves)

    def made(self, *, leaves: bool) -> EmbeddedServer:
        """The member's server, with or without a port for leaves."""
        settings = ClusterSettings(
            name="test",
            port=self.port,
            peers=(f"127.0.0.1:{self.port}",),
            secret=SECRET,
            leaf_port=self.leaf_port if leaves else 0,
            leaf_secret=LEAF_SECRET,
            tls=self.tls,
        )
        member = membership(settings, "node-1")
        return EmbeddedServer(self.folder / "node-1", sync="interval", member=member)

    def client(self, name: str = "node-1") -> JetStreamBroker:
        """The member's own."""
        address = self.server.address
        return JetStreamBroker(
            replace(address, name=name),
            patience_s=FORMS_S,
        )

    async def leaf(
        self, name: str, *, port: int = 0, secret: str = LEAF_SECRET, ca: str = ""
    ) -> LeafBroker:
        """A started leaf, of the member or of what stands before it on another port."""
        leaf = LeafSettings(urls=(f"127.0.0.1:{port or self.leaf_port}",), secret=secret, ca=ca)
        broker = await open_broker(
            StreamSettings(leaf=leaf), node_id=name, data_dir=self.folder / name
        )
        assert isinstance(broker, LeafBroker)
        return broker

    async def kill(self, server: EmbeddedServer) -> None:
        """kill -9; returns when its supervisor has another one up."""
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: server.pid not in (None, pid) and server.ready, 30.0)


@contextlib.asynccontextmanager
async def hub_with(folder: Path, *names: str) -> AsyncIterator[tuple[Hub, list[JetStreamBroker]]]:
    """A member with its client, and a leaf for each name; the clients in that order."""
    hub = Hub(folder)
    await hub.server.start()
    clients: list[JetStreamBroker] = []
    try:
        clients.append(hub.client())
        await clients[0].start()
        for name in names:
            clients.append(await hub.leaf(name))
        yield hub, clients
    finally:
        await asyncio.gather(*(client.stop() for client in reversed(clients)))
        await hub.server.stop()
