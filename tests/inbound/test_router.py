"""From a delivery to wakes: each recipient once, in every pass, and every drop on the record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from inbound_bench import START, Bench, on_a_bench

from actors.delivery import Ack, Delivery, Nak, Outcome, Partition
from actors.ports import TooLarge
from crewlet import sources, topics
from crewlet.broker.memory_client import MemoryClient
from crewlet.company import Company, Contact, Route, Seat
from crewlet.coordination.store import CLAIMS
from crewlet.errors import StoreUnavailable
from crewlet.events import Event, Trace, encode
from crewlet.events import catalogue as types
from crewlet.events.types import (
    ExternalNotification,
    InboundDelivery,
    NotificationSkipped,
    RawWebhook,
)
from crewlet.inbound import letters
from crewlet.inbound.ids import derived_id
from crewlet.inbound.phrases import (
    NO_PARSER,
    NO_SEAT,
    PHRASES,
    RECIPIENT_IS_HUMAN,
    UNREADABLE_PAYLOAD,
)
from crewlet.inbound.router import Router

TALK = "github:acme/rocket#7"
SEATS = (
    Seat(handle="dev", name="Developer", contact=Contact(github_login="octo-dev")),
    Seat(handle="ops", name="Operations", contact=Contact(github_login="octo-ops")),
    Seat(handle="triage", name="Triage"),
    Seat(handle="boss", name="Boss", kind="human", contact=Contact(github_login="the-boss")),
)
ROUTES = (Route(event="github/issues.opened", to="triage"),)
HANDLES = ("dev", "ops", "triage")


def delivery(
    text: str = "@octo-dev please look",
    *,
    id: str = "d1",
    sender: str = "reporter",
    action: str = "opened",
    vendor: str = "github",
    raw: bytes | None = None,
) -> Event:
    """A GitHub issue that says `text`, as the edge puts it before the router."""
    payload = {
        "action": action,
        "issue": {
            "number": 7,
            "title": "It stalls",
            "body": text,
            "user": {"login": sender, "type": "User"},
            "assignees": [],
            "labels": [],
        },
        "repository": {"full_name": "acme/rocket", "name": "rocket", "owner": {"login": "acme"}},
        "sender": {"login": sender, "type": "User"},
    }
    body = json.dumps(payload).encode() if raw is None else raw
    headers = {
        "x-github-event": "issues",
        "x-github-delivery": id,
        "content-type": "application/json",
    }
    return Event.new(
        types.RAW_WEBHOOK,
        id=derived_id(vendor, id) if id else "raw-1",
        at=START,
        trace=Trace.root(),
        source=vendor,
        body=RawWebhook.of(vendor, id, headers, body),
    )


class Post:
    """A router on a bench."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.company = Company(name="Acme", seats=SEATS, routes=ROUTES)
        self.router = Router(
            lambda: self.company,
            queue=bench.queue,
            followers=bench.followers,
            store=bench.client.store,
            clock=bench.clock,
        )

    async def route(self, event: Event) -> Outcome:
        one = letters.read_alone(Delivery(topics.inbound(), encode(event), 1, 1, "1"))
        return await self.router.run(Partition(one.key, (one,)))

    async def waiting(self) -> dict[str, int]:
        states = await self.bench.client.list(topics.INBOXES)
        return {
            handle: state.waiting
            for state in states
            if state.waiting and (handle := topics.handle_of(state.mailbox.topic))
        }

    async def skips(self) -> list[NotificationSkipped]:
        found = await self.bench.recorded(types.NOTIFICATION_SKIPPED)
        return [one.read(NotificationSkipped) for one in found]

    async def deliveries(self) -> list[InboundDelivery]:
        found = await self.bench.recorded(types.INBOUND_DELIVERY)
        return [one.read(InboundDelivery) for one in found]


def at_the_post(play: Callable[[Post], Awaitable[None]]) -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure(*HANDLES)
        await play(Post(bench))

    on_a_bench(main)


@pytest.mark.certifies(122, 124)
def test_addressed_followers_and_routes_are_woken_each_once_with_the_reason() -> None:
    async def play(post: Post) -> None:
        await post.bench.followers.joined(TALK, ["ops", "dev"], at=START)
        assert await post.route(delivery()) == Ack()
        why = {}
        for handle in HANDLES:
            (wake,) = await post.bench.mail(topics.inbox_of(handle))
            body = wake.read(ExternalNotification)
            assert body.recipient_handle == handle
            assert wake.type == types.EXTERNAL_NOTIFICATION
            why[handle] = body.why
        assert why == {"dev": "addressed", "ops": "follower", "triage": "route"}
        (done,) = await post.deliveries()
        assert (done.woken, done.event) == (("dev", "ops", "triage"), "issues.opened")
        assert await post.skips() == []

    at_the_post(play)


@pytest.mark.certifies(113, 119, 202)
def test_a_wake_carries_both_keys_the_moment_and_the_trace_of_its_delivery() -> None:
    async def play(post: Post) -> None:
        cause = delivery()
        await post.route(cause)
        (wake,) = await post.bench.mail(topics.inbox_of("dev"))
        assert letters.partition_key(wake) == letters.conversation_identity(wake) == TALK
        assert (wake.timestamp, wake.source) == (START, "github")
        assert wake.trace.trace_id == cause.trace.trace_id
        assert wake.trace.parent_span_id == cause.trace.span_id

    at_the_post(play)


def test_the_addressed_are_in_the_conversation_from_now_on() -> None:
    async def play(post: Post) -> None:
        await post.route(delivery())
        assert await post.bench.followers.of(TALK, at=START) == ("dev",)
        await post.route(delivery("any news?", id="d2", action="edited"))
        assert await post.waiting() == {"dev": 2, "triage": 1}

    at_the_post(play)


def test_the_sender_is_never_woken() -> None:
    async def play(post: Post) -> None:
        await post.bench.followers.joined(TALK, ["dev"], at=START)
        await post.route(delivery("I said so", sender="octo-dev", action="edited"))
        assert await post.waiting() == {}
        assert await post.skips() == []

    at_the_post(play)


@pytest.mark.certifies(123)
def test_the_company_is_read_anew_for_each_delivery() -> None:
    async def play(post: Post) -> None:
        await post.route(delivery("nobody", id="d1"))
        post.company = Company(name="Acme", seats=SEATS)
        await post.route(delivery("nobody", id="d2"))
        assert await post.waiting() == {"triage": 1}

    at_the_post(play)


# -- a second pass --------------------------------------------------------------------


@pytest.mark.certifies(130)
def test_a_second_pass_publishes_nothing_that_was_not_published_before() -> None:
    async def play(post: Post) -> None:
        for _ in range(2):  # a crash before the claim: the delivery comes again
            assert await post.route(delivery("@octo-dev @the-boss @ghost")) == Ack()
            for entry in await post.bench.client.store.list(CLAIMS):
                await post.bench.client.store.delete(CLAIMS, entry.key)
        assert await post.waiting() == {"dev": 1, "triage": 1}
        assert len(await post.skips()) == len(await post.deliveries()) == 1

    at_the_post(play)


@pytest.mark.certifies(130)
def test_a_vendors_retry_on_another_node_wakes_nobody_a_second_time() -> None:
    async def play(post: Post) -> None:
        await post.route(delivery())
        await asyncio.sleep(200.0)  # longer than the broker remembers ids
        assert await post.route(delivery()) == Ack()
        assert await post.waiting() == {"dev": 1, "triage": 1}
        await post.route(delivery(id="d2"))
        assert await post.waiting() == {"dev": 2, "triage": 2}

    at_the_post(play)


@pytest.mark.certifies(130)
def test_two_deliveries_that_tell_of_one_thing_wake_a_seat_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mention that a vendor sends twice, as a message and as a mention, each with an id of its
    own; and two things that merely look alike."""
    parse = sources.parse

    def told(vendor: str, headers: Any, body: bytes) -> Any:
        thing = "first" if b"first" in body else "second"
        read = parse(vendor, headers, body)
        return [msgspec.structs.replace(one, occurrence=thing) for one in read]

    monkeypatch.setattr(sources, "parse", told)

    async def play(post: Post) -> None:
        await post.route(delivery("@octo-dev the first", id="d1"))
        await post.route(delivery("@octo-dev the first", id="d2"))
        await post.route(delivery("@octo-dev the second", id="d3"))
        assert (await post.waiting())["dev"] == 2

    at_the_post(play)


def test_a_delivery_without_an_id_is_claimed_by_nobody() -> None:
    async def play(post: Post) -> None:
        await post.route(delivery(id=""))
        assert await post.bench.client.store.list(CLAIMS) == []
        assert await post.waiting() == {"dev": 1, "triage": 1}

    at_the_post(play)


# -- failures -------------------------------------------------------------------------


@pytest.mark.certifies(129)
def test_a_recipient_that_fails_blocks_no_other_and_comes_again() -> None:
    async def play(post: Post) -> None:
        publish = MemoryClient.publish
        blocked = topics.inbox("dev")

        class Choosy(MemoryClient):
            async def publish(
                self, topic: str, body: bytes, *, message_id: str, within_s: float = 0.0
            ) -> Any:
                if topic == blocked:
                    raise TooLarge("not this one")
                return await publish(self, topic, body, message_id=message_id)

        post.bench.client.__class__ = Choosy
        outcome = await post.route(delivery())
        assert isinstance(outcome, Nak) and outcome.reason == "dev: not this one"
        assert await post.waiting() == {"triage": 1}
        assert await post.deliveries() == []  # neither counted nor claimed
        assert await post.bench.client.store.list(CLAIMS) == []
        blocked = ""
        assert await post.route(delivery()) == Ack()
        assert await post.waiting() == {"dev": 1, "triage": 1}

    at_the_post(play)


@pytest.mark.certifies(129, 279)
def test_a_seat_without_a_mailbox_is_skipped_and_blocks_nobody() -> None:
    """It would have none the next time either."""

    async def play(post: Post) -> None:
        await post.bench.client.delete(topics.inbox_of("dev"))
        assert await post.route(delivery()) == Ack()
        assert await post.waiting() == {"triage": 1}
        (skip,) = await post.skips()
        assert skip.reason == NO_SEAT
        assert skip.recipients == ("dev",)
        assert topics.inbox("dev") in skip.detail

    at_the_post(play)


def test_followers_that_are_unknown_are_not_nobody() -> None:
    async def play(post: Post) -> None:
        post.bench.store_down(True)
        assert isinstance(await post.route(delivery()), Nak)
        assert await post.waiting() == {}
        post.bench.store_down(False)
        assert await post.route(delivery()) == Ack()
        assert await post.waiting() == {"dev": 1, "triage": 1}

    at_the_post(play)


def test_a_claim_that_cannot_be_read_or_written_stops_nothing() -> None:
    async def play(post: Post) -> None:
        async def unavailable(*_: object) -> Any:
            raise StoreUnavailable("no answer")

        class Store:
            get = put = staticmethod(unavailable)

        post.router._store = Store()  # type: ignore[assignment]
        assert await post.route(delivery()) == Ack()
        assert await post.waiting() == {"dev": 1, "triage": 1}

    at_the_post(play)


# -- skips ----------------------------------------------------------------------------


@pytest.mark.certifies(126, 127, 205)
def test_whoever_was_meant_and_is_not_woken_is_on_the_record() -> None:
    async def play(post: Post) -> None:
        post.company = Company(name="Acme", seats=SEATS)
        cause = delivery("@the-boss and @ghost")
        await post.route(cause)
        skips = {skip.reason: skip for skip in await post.skips()}
        assert set(skips) == {RECIPIENT_IS_HUMAN, NO_SEAT}
        assert set(skips) <= set(PHRASES)
        assert skips[RECIPIENT_IS_HUMAN].recipients == ("boss",)
        assert skips[NO_SEAT].recipients == ("ghost",)
        assert {skip.delivery for skip in skips.values()} == {"d1"}
        assert {skip.source_type for skip in skips.values()} == {"github"}
        records = await post.bench.recorded(types.NOTIFICATION_SKIPPED)
        assert {record.trace.trace_id for record in records} == {cause.trace.trace_id}
        assert await post.waiting() == {}

    at_the_post(play)


@pytest.mark.certifies(127)
@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (delivery(raw=b"{not json"), UNREADABLE_PAYLOAD),
        (delivery(raw=b"\xff\xfe"), UNREADABLE_PAYLOAD),
        (delivery(raw=b""), UNREADABLE_PAYLOAD),
        (delivery(vendor="nobody"), NO_PARSER),
    ],
    ids=["no json", "no text", "empty", "no source"],
)
def test_a_delivery_that_cannot_be_read_is_skipped_and_counted(event: Event, reason: str) -> None:
    async def play(post: Post) -> None:
        assert await post.route(event) == Ack()
        assert [skip.reason for skip in await post.skips()] == [reason]
        assert [done.woken for done in await post.deliveries()] == [()]

    at_the_post(play)


@pytest.mark.certifies(46, 127)
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"vendor": "github"},
        {"vendor": 7, "delivery": "d", "headers": {}},
        {"vendor": "github", "delivery": "d", "headers": {"x": 1}},
        {"vendor": "github", "delivery": "d", "headers": {}, "base64": "abc"},
        {"vendor": "github", "delivery": "d", "headers": {}, "base64": "é"},
    ],
)
def test_what_is_no_delivery_at_all_is_skipped_and_not_tried_again(body: dict[str, Any]) -> None:
    async def play(post: Post) -> None:
        event = Event.new(types.RAW_WEBHOOK, id="r", at=START, trace=Trace.root(), body=body)
        assert await post.route(event) == Ack()
        assert [skip.reason for skip in await post.skips()] == [UNREADABLE_PAYLOAD]
        assert await post.waiting() == {}

    at_the_post(play)


def test_a_delivery_that_concerns_nobody_is_counted_and_no_skip() -> None:
    async def play(post: Post) -> None:
        await post.route(delivery("hello", action="edited"))
        assert await post.skips() == []
        assert [done.woken for done in await post.deliveries()] == [()]

    at_the_post(play)


def test_ids_follow_from_their_parts() -> None:
    assert derived_id("a", 1, "dev") == derived_id("a", "1", "dev")
    assert len({derived_id("a", 1, "dev"), derived_id("a", 1), derived_id("b", 1, "dev")}) == 3
