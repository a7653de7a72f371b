"""The twin under a suite, and for users' own tests."""

from __future__ import annotations

from typing import Final

from crewlet.broker.memory import MemoryBroker
from crewlet.broker.port import CompanyBroker


class TwinHarness:
    """`crewlet.testing.conformance.Harness` over a MemoryBroker, for a loop in virtual time."""

    quiet_s: Final = 0.15
    slack_s: Final = 0.0

    def __init__(self, broker: MemoryBroker | None = None) -> None:
        self.broker = broker or MemoryBroker()
        self._names = 0
        self._clients: list[CompanyBroker] = []

    def name(self) -> str:
        """A handle that no other case of this broker used."""
        self._names += 1
        return f"twin-{self._names}"

    async def client(self, *, started: bool = True) -> CompanyBroker:
        """Another node's client."""
        client = self.broker.client(f"node-{len(self._clients) + 1}")
        self._clients.append(client)
        if started:
            await client.start()
        return client

    async def restart(self) -> None:
        """The twin has no storage to come back from."""
        raise NotImplementedError("the twin keeps its mail in memory")

    async def close(self) -> None:
        """Stop every client."""
        for client in self._clients:
            await client.stop()
