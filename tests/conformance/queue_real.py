"""Real servers under the queue's suite, reached through a cable that a case may cut."""

from __future__ import annotations

import asyncio
from pathlib import Path

from crewlet.broker.dial import Address
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.port import CompanyBroker
from crewlet.testing.conformance.queue import QueueCase
from tests.conformance.cut import Cable
from tests.conformance.real_harness import Real, RealHarness
from tests.conformance.server import NatsServer


class Server:
    """A server and its cable: clients of a case with an outage go through it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._direct = Address(())
        self.cable: Cable | None = None

    async def _reached_at(self, address: Address) -> None:
        self._direct = address
        self.cable = Cable(int(address.servers[0].rpartition(":")[2]))
        await self.cable.mend()

    def client(self, node_id: str, *, by_cable: bool) -> CompanyBroker:
        assert self.cable is not None
        direct = self._direct
        by = (f"nats://127.0.0.1:{self.cable.port}",) if by_cable else direct.servers
        return JetStreamBroker(
            Address(by, name=node_id, user=direct.user, password=direct.password)
        )

    async def start(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


class External(Server):
    """`type: nats`: a server that somebody else runs."""

    async def start(self) -> None:
        self._server = NatsServer(self._folder)
        self._server.start()
        await self._reached_at(Address((self._server.url,)))

    async def close(self) -> None:
        assert self.cable is not None
        await self.cable.cut()
        self._server.stop()


class Embedded(Server):
    """`type: embedded`: our own child, each write on the disk."""

    async def start(self) -> None:
        self._server = EmbeddedServer(self._folder, sync="always")
        await self._server.start()
        await self._reached_at(self._server.address)

    async def close(self) -> None:
        assert self.cable is not None
        await self.cable.cut()
        await self._server.stop()


class _Wired(Real):
    def __init__(self, server: Server, *, by_cable: bool) -> None:
        self._server = server
        self._by_cable = by_cable

    def client(self, node_id: str) -> CompanyBroker:
        return self._server.client(node_id, by_cable=self._by_cable)

    async def restart(self) -> None:
        raise NotImplementedError("the queue's suite cuts the cable instead")


class RealQueues(RealHarness):
    """`QueueHarness` over a server."""

    def __init__(self, server: Server, case: QueueCase) -> None:
        super().__init__(_Wired(server, by_cable=case.needs == "outage"), f"q-{case.name}")
        assert server.cable is not None
        self._cable = server.cable

    async def down(self) -> None:
        await self._cable.cut()

    async def up(self) -> None:
        await self._cable.mend()


async def run(server: Server, case: QueueCase) -> None:
    """The case passes, or raises; the cable is whole afterwards."""
    harness = RealQueues(server, case)
    try:
        async with asyncio.timeout(60):
            await case.run(harness)
    finally:
        await harness.up()
        await harness.close()
