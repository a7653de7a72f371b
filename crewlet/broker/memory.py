"""The twin: a broker in memory that keeps the same promises as JetStream, on the loop's time.

`MemoryBroker` is the broker that all share; `client()` is one node's hold on it. A node that
leaves takes nothing along: mail, counts and dead letters stay with the broker. On a virtual
loop no wall time passes, and equal programs see equal runs.
"""

from __future__ import annotations

from crewlet.broker.memory_client import MemoryClient
from crewlet.broker.memory_server import MemoryServer


class MemoryBroker(MemoryServer):
    """The twin, as a program holds it."""

    def client(self, node_id: str) -> MemoryClient:
        """A node's client, not started yet."""
        return MemoryClient(self, node_id)
