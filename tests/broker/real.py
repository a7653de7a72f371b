"""Embedded servers for tests, and a deadline for whatever is waited for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psutil

from actors.delivery import Delivery, Done, Mailbox
from crewlet import topics
from crewlet.broker.dial import Address
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker

SOON_S = 10.0


class Real:
    """One server, and clients of it."""

    def __init__(self, folder: Path, *, memory: bool = False) -> None:
        self.memory = memory
        self.server = EmbeddedServer(folder, sync=None if memory else "interval")

    def client(self, node_id: str = "node") -> JetStreamBroker:
        address = self.server.address
        return JetStreamBroker(
            Address(address.servers, name=node_id, user=address.user, password=address.password),
            memory=self.memory,
        )

    async def restart(self) -> None:
        """kill -9, and wait until its supervisor has another one up."""
        pid = self.server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: self.server.pid not in (None, pid) and self.server.ready)


@contextlib.asynccontextmanager
async def serving(folder: Path, *, memory: bool = False) -> AsyncIterator[Real]:
    real = Real(folder, memory=memory)
    await real.server.start()
    try:
        yield real
    finally:
        await real.server.stop()


@contextlib.asynccontextmanager
async def connected(folder: Path, *, memory: bool = True) -> AsyncIterator[JetStreamBroker]:
    async with serving(folder, memory=memory) as real:
        client = real.client()
        await client.start()
        try:
            yield client
        finally:
            await client.stop()


async def freeze(pid: int) -> None:
    """Returns when the process runs no more; the caller continues it."""
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)


async def until(holds: Callable[[], object], within_s: float = SOON_S) -> None:
    """Poll until it holds; AssertionError when it does not in time."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.01)


async def eventually(asks: Callable[[], Awaitable[object]], within_s: float = SOON_S) -> None:
    """The same for a question that has to be awaited."""
    deadline = time.monotonic() + within_s
    while not await asks():
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.02)


def box(handle: str = "dev") -> Mailbox:
    return topics.inbox_of(handle)


async def send(client: JetStreamBroker, mailbox: Mailbox, *bodies: str) -> None:
    for body in bodies:
        await client.publish(mailbox.topic, body.encode(), message_id=f"{mailbox.topic}/{body}")


def bodies(deliveries: list[Delivery] | tuple[Delivery, ...]) -> list[str]:
    return [delivery.body.decode() for delivery in deliveries]


def done(deliveries: list[Delivery]) -> list[tuple[Delivery, Done]]:
    return [(delivery, Done()) for delivery in deliveries]
