"""Where mailboxes are filled and emptied: an embedded broker of our own, and a clock on it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import nats
from nats.aio.client import Client

from actors.delivery import Mailbox
from crewlet.broker import names
from crewlet.broker.dial import Address
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.opening import EmbeddedBroker
from crewlet.broker.settings import StreamSettings, Sync

POLL_S: Final = 0.001


class Place:
    """A server, our client of it, and one plain connection that fills and looks."""

    def __init__(self, server: EmbeddedServer, broker: EmbeddedBroker, client: Client) -> None:
        self.server = server
        self.broker = broker
        self._client = client

    @property
    def address(self) -> Address:
        return self.server.address

    async def connect(self) -> Client:
        return await _connect(self.address)

    async def fill(self, mailbox: Mailbox, bodies: Sequence[bytes]) -> None:
        """Returns when the server has all of them for this mailbox."""
        for body in bodies:
            await self._client.publish(mailbox.topic, body)
        await self._client.flush(timeout=60)
        while (await self._state(mailbox))[0] < len(bodies):  # noqa: ASYNC110 - the server's
            await asyncio.sleep(POLL_S)

    async def emptied(self, mailbox: Mailbox) -> None:
        """Returns when the server has every acknowledgement: the end of a measurement."""
        while any(await self._state(mailbox)):  # noqa: ASYNC110 - the server's
            await asyncio.sleep(POLL_S)

    async def _state(self, mailbox: Mailbox) -> tuple[int, int]:
        stream, consumer = names.stream_of(mailbox.topic), names.consumer(mailbox)
        info = await self._client.jetstream().consumer_info(stream, consumer)
        return info.num_pending or 0, info.num_ack_pending or 0


@asynccontextmanager
async def open_place(sync: Sync | None = "interval") -> AsyncIterator[Place]:
    """`sync` as in a node's settings; None keeps the mail in memory."""
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedServer(Path(folder), sync=sync)
        await server.start()
        settings = StreamSettings(store_dir=None if sync else "")
        broker = EmbeddedBroker(server, settings, "benchmark")
        try:
            await broker.start()
            client = await _connect(server.address)
            try:
                yield Place(server, broker, client)
            finally:
                await client.close()
        finally:
            await broker.stop()


async def _connect(address: Address) -> Client:
    servers = list(address.servers)
    return await nats.connect(servers, user=address.user, password=address.password)
