"""The notification service: deliveries from outside become wakes in the seats' inboxes.

One group for the whole fleet: whichever node wins a delivery routes it, whether or not it runs
the seats. Every id below is derived from the delivery's own, so that a second pass - after a
crash, or for a vendor's retry - publishes nothing that was not published before.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence

import msgspec
import structlog

from actors.delivery import Ack, Nak, Outcome, Partition, Partly
from actors.ports import BrokerError, Clock, NoMailbox
from crewlet import topics
from crewlet.company import Company
from crewlet.coordination.store import CLAIMS, Store
from crewlet.errors import CrewletError, StoreUnavailable
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.events.types import (
    ExternalNotification,
    InboundDelivery,
    NotificationSkipped,
    RawWebhook,
)
from crewlet.inbound.drained import routed
from crewlet.inbound.followers import Followers
from crewlet.inbound.ids import derived_id
from crewlet.inbound.letters import CONVERSATION_IDENTITY, PARTITION_KEY
from crewlet.inbound.lookup import Lookups
from crewlet.inbound.phrases import (
    ALREADY_ACCEPTED,
    CONVERSATION_UNKNOWN,
    NO_SEAT,
    RATE_LIMITED,
    UNREADABLE_PAYLOAD,
    accepted_before,
)
from crewlet.inbound.rate import RateValve
from crewlet.inbound.routing import Recipient, Routing, recipients
from crewlet.inbound.side_by_side import Reading
from crewlet.queue import Publisher
from crewlet.sources import Notification, Skip

log = structlog.get_logger(__name__)


class Router:
    """`run` is the handler of notifications.inbound: of a drain as well as of one delivery. The
    company is read anew per delivery."""

    def __init__(
        self,
        company: Callable[[], Company],
        *,
        queue: Publisher,
        followers: Followers,
        store: Store,
        clock: Clock,
        lookups: Lookups | None = None,
    ) -> None:
        self._company = company
        self._lookups = lookups or Lookups({})
        self._rate = RateValve(store)
        self._queue = queue
        self._followers = followers
        self._store = store
        self._clock = clock

    async def run(self, partition: Partition) -> Outcome | Partly:
        return await routed(partition, self._deliver, self._clock)

    async def _deliver(self, reading: Reading) -> Outcome:
        event, raw = reading.event, reading.raw
        if raw is None:
            await self._skip(event, 0, UNREADABLE_PAYLOAD, reading.fault, ())
            return Ack()
        if await self._routed_before(event, raw):
            await self._skip(event, 0, ALREADY_ACCEPTED, accepted_before(raw.delivery), ())
            return Ack()
        return await self._route(event, raw, reading.parsed)

    async def _route(
        self, event: Event, raw: RawWebhook, parsed: Sequence[Notification | Skip]
    ) -> Outcome:
        """Every recipient is tried; what failed makes the delivery come back for the rest."""
        woken: list[str] = []
        failures: list[str] = []
        for index, found in enumerate(parsed):
            if isinstance(found, Skip):
                await self._skip(event, index, found.reason, found.detail, ())
                continue
            found = await self._placed(event, index, found)
            try:
                routing = await self._routing(found)
            except StoreUnavailable as error:
                failures.append(str(error))
                continue
            reaching = (self._reach(event, index, found, to, raw.delivery) for to in routing.wake)
            ends = await asyncio.gather(*reaching)  # each seat has a mailbox of its own
            failures += filter(None, ends)
            woken += [to.handle for to, end in zip(routing.wake, ends, strict=True) if end == ""]
            await self._record_skips(event, index, raw, routing)
        if failures:
            return Nak(reason="; ".join(failures)[:500])
        await self._done(event, raw, parsed, woken)
        return Ack()

    async def _placed(self, event: Event, index: int, found: Notification) -> Notification:
        """The notification in its conversation. Where that stays unknown it is recorded: nobody
        can be told, but for whom a route names."""
        if found.verdict != "lookup":
            return found
        placed = await self._lookups.named(found, self._company())
        if isinstance(placed, Notification):
            return placed
        await self._skip(event, index, CONVERSATION_UNKNOWN, placed.detail, ())
        return found

    async def _reach(
        self, event: Event, index: int, found: Notification, recipient: Recipient, delivery: str
    ) -> str | None:
        """Wake one seat; why it could not be, None where it is not to be."""
        wake = derived_id(*_what(event, index, found), recipient.handle)
        if await self._too_many(event, index, recipient, wake):
            return None
        try:
            return await self._wake(event, wake, found, recipient, delivery)
        except NoMailbox as error:  # nor would there be one the next time
            await self._skip(event, index, NO_SEAT, str(error), (recipient.handle,))
            return None

    async def _too_many(self, event: Event, index: int, recipient: Recipient, wake: str) -> bool:
        company, now = self._company(), self._clock.now()
        limit, seat = company.notification_rate_limit, company.seat(recipient.handle)
        if seat is None or await self._rate.lets(seat.agent_id, limit, wake=wake, at=now):
            return False
        detail = f"{recipient.handle} had {limit} notifications in this second, its limit"
        await self._skip(event, index, RATE_LIMITED, detail, (recipient.handle,))
        return True

    async def _routing(self, notification: Notification) -> Routing:
        """Who is woken; those addressed are in the conversation from now on."""
        at, identity = self._clock.now(), notification.conversation_identity
        seen = await self._followers.look(identity, at=at)
        routing = recipients(notification, self._company(), seen.seats)
        await self._followers.joined(identity, routing.joins, at=at, seen=seen)
        return routing

    async def _wake(
        self,
        cause: Event,
        id: str,
        notification: Notification,
        recipient: Recipient,
        delivery: str,
    ) -> str:
        """Put the notification into one inbox; why it could not be, or nothing. NoMailbox."""
        body = ExternalNotification(
            notification=msgspec.to_builtins(notification),
            delivery=delivery,
            recipient_handle=recipient.handle,
            why=recipient.why,
        )
        event = Event.new(
            types.EXTERNAL_NOTIFICATION,
            id=id,
            at=cause.timestamp,
            trace=cause.trace.child(),
            source=notification.source,
            payload={
                PARTITION_KEY: notification.partition_key,
                CONVERSATION_IDENTITY: notification.conversation_identity,
                "recipient_handle": recipient.handle,
            },
            body=body,
        )
        try:
            await self._queue.publish(topics.inbox(recipient.handle), event)
        except NoMailbox:
            raise
        except (BrokerError, CrewletError) as error:
            log.warning("wake_not_published", seat=recipient.handle, error=str(error))
            return f"{recipient.handle}: {error}"
        return ""

    # -- what is recorded -------------------------------------------------------------

    async def _record_skips(
        self, event: Event, index: int, raw: RawWebhook, routing: Routing
    ) -> None:
        for skip in routing.skips:
            await self._skip(event, index, skip.reason, skip.detail, (skip.who,))
        if routing.nobody:
            log.debug("delivery_concerns_nobody", vendor=raw.vendor, delivery=raw.delivery)

    async def _skip(
        self, cause: Event, index: int, reason: str, detail: str, who: Sequence[str]
    ) -> None:
        """One record for each dropped recipient, under an id that a second pass repeats."""
        body = NotificationSkipped(
            reason=reason,
            detail=detail,
            source_type=cause.source,
            delivery=cause.value("delivery", str, ""),
            recipients=tuple(who),
        )
        await self._queue.record(
            Event.new(
                types.NOTIFICATION_SKIPPED,
                id=derived_id(cause.id, index, "skip", *who),
                at=self._clock.now(),
                trace=cause.trace.child(),
                source=cause.source,
                body=body,
            )
        )

    async def _done(
        self,
        event: Event,
        raw: RawWebhook,
        parsed: Sequence[Notification | Skip],
        woken: Sequence[str],
    ) -> None:
        """Claim the delivery only now: a claim before the wakes would lose them in a crash."""
        first = parsed[0]
        body = InboundDelivery(
            vendor=raw.vendor,
            delivery=raw.delivery,
            event=first.event_type,
            size=len(raw.body),
            verdicts=tuple(p.verdict for p in parsed if isinstance(p, Notification)),
            woken=tuple(woken),
        )
        await self._queue.record(
            Event.new(
                types.INBOUND_DELIVERY,
                id=derived_id(event.id, "delivery"),
                at=self._clock.now(),
                trace=event.trace.child(),
                source=raw.vendor,
                body=body,
            )
        )
        if raw.delivery:
            try:
                await self._store.put(CLAIMS, _claim(raw), event.id.encode())
            except StoreUnavailable as error:
                log.warning("claim_not_written", delivery=raw.delivery, error=str(error))

    async def _routed_before(self, event: Event, raw: RawWebhook) -> bool:
        """Whether a copy of this delivery was routed in the last minutes. Unknown: route it,
        since every id downstream is the same again."""
        if not raw.delivery:
            return False
        try:
            return await self._store.get(CLAIMS, _claim(raw)) is not None
        except StoreUnavailable as error:
            log.warning("claim_unreadable", delivery=raw.delivery, error=str(error))
            return False


def _what(cause: Event, index: int, notification: Notification) -> tuple[str | int, ...]:
    """What happened, whichever delivery tells of it: a seat is woken by it once. Where the vendor
    does not say, each delivery is a thing of its own."""
    if notification.occurrence:
        return notification.source, notification.occurrence
    return cause.id, index


def _claim(raw: RawWebhook) -> str:
    """A vendor's delivery id is whatever the vendor sends; a key is not."""
    return hashlib.sha256(f"{raw.vendor}\0{raw.delivery}".encode()).hexdigest()[:32]
