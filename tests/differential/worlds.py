"""The two brokers under a script, with what a script does to them beyond the port."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from actors.delivery import Delivery, HandBack, Mailbox
from actors.ports import Unavailable
from crewlet.broker import names, receipts
from crewlet.broker.dial import Address
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_client import MemoryClient
from crewlet.broker.port import CompanyBroker
from tests.differential.servers import MortalServer

Ping: TypeAlias = Callable[[], Awaitable[None]]

SETTLED_S: Final = 0.2
"""nats-server writes what it handed out a moment later; killed before, it has lost a count."""

NOBODY_S: Final = 0.03
"""How long a parked fetch is watched when nothing says that it must end."""

_FAR: Final = 1 << 40


class World(Protocol):
    """A broker, its clients, and the misfortunes that befall them."""

    @property
    def quiet_s(self) -> float:
        """How long one listens before one believes that nothing comes."""

    def client(self, node_id: str) -> CompanyBroker:
        """A client, not started yet."""

    async def crash(self, client: CompanyBroker) -> None:
        """The process of this client dies: it hands back nothing."""

    async def restart(self) -> None:
        """The broker is killed and comes back on its storage."""

    async def fence(self, client: CompanyBroker, mailbox: Mailbox) -> None:
        """All that this client said about the mailbox was heard."""

    async def deleted(self, topic: str) -> None:
        """Every client has heard that a mailbox of this topic was deleted."""

    async def travel(self, ping: Ping) -> None:
        """Let as much time pass as mail needs now; `ping` sends some and waits for it."""


class Twin:
    """`MemoryBroker` in virtual time."""

    quiet_s: Final = 1e-4

    def __init__(self) -> None:
        self.broker = MemoryBroker()

    def client(self, node_id: str) -> CompanyBroker:
        return self.broker.client(node_id)

    async def crash(self, client: CompanyBroker) -> None:
        assert isinstance(client, MemoryClient)
        client.crash()

    async def restart(self) -> None:
        self.broker.restart()

    async def fence(self, client: CompanyBroker, mailbox: Mailbox) -> None:
        """It hears at once."""

    async def deleted(self, topic: str) -> None:
        """So do the clients."""

    async def travel(self, ping: Ping) -> None:
        """Mail takes no time."""


class Real:
    """A nats-server of its own; many scripts, one after the other."""

    quiet_s: Final = NOBODY_S

    def __init__(self, server: MortalServer) -> None:
        self._server = server
        self._clients: list[JetStreamBroker] = []

    def client(self, node_id: str) -> CompanyBroker:
        client = JetStreamBroker(Address((self._server.url,), name=node_id))
        self._clients.append(client)
        return client

    async def crash(self, client: CompanyBroker) -> None:
        assert isinstance(client, JetStreamBroker)
        client._started = False
        client._pulls.clear()
        await client._wire.close()  # what it was handed stays out: nothing was said about it

    async def restart(self) -> None:
        await asyncio.sleep(SETTLED_S)
        live = [client for client in self._clients if client.connected]
        self._server.kill()
        self._server.start()
        async with asyncio.timeout(20):
            for client in live:
                await _back(client)

    async def fence(self, client: CompanyBroker, mailbox: Mailbox) -> None:
        """A confirmed word about a message that never was: words are heard in order."""
        stream, consumer = names.stream_of(mailbox.topic), names.consumer(mailbox)
        nothing = Delivery(
            mailbox=mailbox,
            body=b"",
            count=None,
            position=_FAR,
            receipt=receipts.write(stream, consumer, _FAR, _FAR),
        )
        with contextlib.suppress(Unavailable):  # there is no such mailbox
            await client.settle([(nothing, HandBack())])

    async def deleted(self, topic: str) -> None:
        live = [client for client in self._clients if client.connected]
        async with asyncio.timeout(2):
            while any(topic in client._coverage._until for client in live):
                await asyncio.sleep(0.001)

    async def travel(self, ping: Ping) -> None:
        """There and back, twice: what a step began is then at its end, too."""
        await ping()
        await ping()


async def _back(client: JetStreamBroker) -> None:
    while True:
        try:
            await client.list(">")
            return
        except Unavailable:
            await asyncio.sleep(0.01)
