"""JetStream passes both suites: on a server of an operator's, and on the embedded one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from crewlet.broker.dial import Address
from crewlet.broker.embedded import EmbeddedServer
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.port import CompanyBroker
from crewlet.testing.conformance import Case, broker_cases, store_cases
from tests.conformance.real_harness import Real, RealHarness
from tests.conformance.server import NatsServer

LINES = {"external": (2, 8), "embedded": (2, 4, 6)}


class External:
    """`type: nats`: a server that somebody else runs."""

    def __init__(self, folder: Path) -> None:
        self._server = NatsServer(folder)
        self._server.start()

    def client(self, node_id: str) -> CompanyBroker:
        return JetStreamBroker(Address((self._server.url,), name=node_id))

    async def restart(self) -> None:
        self._server.restart()

    async def close(self) -> None:
        self._server.stop()


class Embedded:
    """`type: embedded`: our own child, each write on the disk."""

    def __init__(self, folder: Path) -> None:
        self._server = EmbeddedServer(folder, sync="always")

    async def start(self) -> None:
        await self._server.start()

    def client(self, node_id: str) -> CompanyBroker:
        address = self._server.address
        return JetStreamBroker(
            Address(address.servers, name=node_id, user=address.user, password=address.password)
        )

    async def restart(self) -> None:
        """It is killed, and comes back by itself."""
        old = self._server.pid
        assert old is not None
        os.kill(old, signal.SIGKILL)
        async with asyncio.timeout(20):
            while self._server.pid in (old, None):
                await asyncio.sleep(0.01)

    async def close(self) -> None:
        await self._server.stop()


@pytest.fixture(scope="module")
def external(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    real = External(tmp_path_factory.mktemp("external"))
    yield real
    runner.run(real.close())


@pytest.fixture(scope="module")
def embedded(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    real = Embedded(tmp_path_factory.mktemp("embedded"))
    runner.run(real.start())
    yield real
    runner.run(real.close())


CASES = [
    pytest.param(
        broker,
        case,
        id=f"{broker}-{case.name}",
        marks=pytest.mark.certifies(*LINES[broker], *case.lines),
    )
    for broker in LINES
    for case in (*broker_cases, *store_cases)
    if case.needs != "virtual_time"
]


@pytest.mark.parametrize(("broker", "case"), CASES)
def test_case(
    broker: str, case: Case, runner: asyncio.Runner, request: pytest.FixtureRequest
) -> None:
    harness = RealHarness(request.getfixturevalue(broker), case.name)

    async def main() -> None:
        try:
            async with asyncio.timeout(45):
                await case.run(harness)
        finally:
            await harness.close()

    runner.run(main())
