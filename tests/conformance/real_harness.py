"""The suite's harness over a real broker: one server for a whole file of cases."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from crewlet.broker.port import CompanyBroker


class Real(Protocol):
    """A server, and clients of it."""

    def client(self, node_id: str) -> CompanyBroker: ...

    async def restart(self) -> None: ...


class RealHarness:
    """`crewlet.testing.conformance.Harness`; times are a busy machine's."""

    quiet_s = 0.15
    slack_s = 1.0

    def __init__(self, real: Real, case: str) -> None:
        self._real = real
        self._case = case.replace("_", "-")[:40]
        self._names = 0
        self._stops: list[Callable[[], Awaitable[None]]] = []

    def name(self) -> str:
        """Distinct among the cases of one server: its folder is new in every run."""
        self._names += 1
        return f"{self._case}-{self._names}"

    async def client(self, *, started: bool = True) -> CompanyBroker:
        client = self._real.client(f"node-{len(self._stops) + 1}")
        self._stops.append(client.stop)
        if started:
            await client.start()
        return client

    async def restart(self) -> None:
        await self._real.restart()

    async def close(self) -> None:
        for stop in self._stops:
            await stop()
