"""What the web asks of the node behind it, and how much it lets in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from crewlet.events import Trace


class Edge(Protocol):
    """The node, as a webhook sees it."""

    @property
    def draining(self) -> bool:
        """Whether the node is on its way out. Deliveries are still taken: they are durable,
        and whoever serves the company next works them."""

    @property
    def ready(self) -> bool:
        """Whether the node has started completely."""

    def secret(self, vendor: str) -> bytes | None:
        """The vendor's secret; None where the company does not use the vendor (404)."""

    def facts(self, vendor: str) -> Mapping[str, str]:
        """What goes beside a delivery's headers and no sender can say, under names with a
        colon in front (`crewlet.sources.edge_facts`)."""

    async def accept(
        self, vendor: str, headers: Mapping[str, str], body: bytes, trace: Trace
    ) -> bool:
        """Publish a verified delivery; returns once it is durable, False if it was known.

        Header names are lower case. Raises `actors.ports.BrokerError` or `PublishUnknown` (503:
        a retry is safe), `actors.ports.TooLarge` (413).
        """


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds of the webhook edge.

    `body_bytes`: one body (decision: 6 MiB, so that the event built from it fits 8 MiB).
    `body_s`: a body arrives within this; GitHub itself gives up after 10 s.
    `buffered_bytes`: all bodies in memory together; above it, 429.
    `publishing`: deliveries that wait for the broker at the same time; above it, 429.
    """

    body_bytes: int = 6 * 1024 * 1024
    body_s: float = 10.0
    buffered_bytes: int = 64 * 1024 * 1024
    publishing: int = 256
