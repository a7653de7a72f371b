"""What the web edge does with a delivery that it has verified: put it before the router."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from actors.ports import Clock
from crewlet import sources, topics
from crewlet.company import Company, GenericIntegration
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.fresh import new_id
from crewlet.events.types import NotificationSkipped, RawWebhook
from crewlet.inbound.ids import derived_id
from crewlet.inbound.phrases import ALREADY_ACCEPTED, accepted_before
from crewlet.queue import Publisher
from crewlet.sources.edge_facts import RECEIVED, RULE
from crewlet.sources.generic_rule import written

ACCEPT_WITHIN_S: Final = 8.0
"""How long a vendor waits for our 202: GitHub gives up after ten seconds."""

log = structlog.get_logger(__name__)


class WebhookEdge:
    """The edge of one node; `ready` and `draining` are what /ready answers from."""

    def __init__(self, company: Callable[[], Company], queue: Publisher, clock: Clock) -> None:
        self._company = company
        self._queue = queue
        self._clock = clock
        self.ready = False
        self.draining = False

    def secret(self, vendor: str) -> bytes | None:
        """What proves that a delivery is the vendor's; None where the company has no such."""
        integration = self._company().integrations.of(vendor)
        secret = None if integration is None else integration.secret
        return None if secret is None else secret.reveal().encode()

    def facts(self, vendor: str) -> Mapping[str, str]:
        """What no header says: when the delivery arrived, and the rule of an own sender."""
        facts = {RECEIVED: f"{self._clock.now().timestamp():.3f}"}
        integration = self._company().integrations.of(vendor)
        if isinstance(integration, GenericIntegration):
            facts[RULE] = written(integration.rule)
        return facts

    async def accept(
        self, vendor: str, headers: Mapping[str, str], body: bytes, trace: Trace
    ) -> bool:
        """Returns once the delivery is durable. False when the broker has it already: a
        vendor's retry, or its redeliver button; that is recorded, since nothing else says so."""
        event, new = await self._publish(vendor, headers, body, trace)
        if not new:
            self._again(vendor, event.value("delivery", str, ""), event)
        return new

    async def hear(
        self, vendor: str, headers: Mapping[str, str], body: bytes, trace: Trace
    ) -> bool:
        """The same for what every node hears: that others were first is nothing to record."""
        _, new = await self._publish(vendor, headers, body, trace)
        return new

    async def _publish(
        self, vendor: str, headers: Mapping[str, str], body: bytes, trace: Trace
    ) -> tuple[Event, bool]:
        delivery = sources.delivery_key(vendor, headers, body)
        kept = sources.published(vendor, body)
        event = Event.new(
            types.RAW_WEBHOOK,
            id=derived_id(vendor, delivery) if delivery else new_id(),
            at=self._clock.now(),
            trace=trace,
            source=vendor,
            body=RawWebhook.of(vendor, delivery, _kept(vendor, headers), kept),
        )
        stored = await self._queue.publish(topics.INBOUND, event, within_s=ACCEPT_WITHIN_S)
        return event, not stored.receipt.duplicate

    def _again(self, vendor: str, delivery: str, event: Event) -> None:
        body = NotificationSkipped(
            reason=ALREADY_ACCEPTED,
            detail=accepted_before(delivery),
            source_type=vendor,
            delivery=delivery,
        )
        self._queue.record_soon(
            Event.new(
                types.NOTIFICATION_SKIPPED,
                at=self._clock.now(),
                trace=event.trace.child(),
                source=vendor,
                body=body,
            )
        )


def _kept(vendor: str, headers: Mapping[str, str]) -> dict[str, str]:
    """What reading needs of a request. Signatures, tokens and cookies stay at the edge."""
    lower = {key.lower(): value for key, value in headers.items()}
    return {key: lower[key] for key in sources.kept_headers(vendor) if key in lower}
