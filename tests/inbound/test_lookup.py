"""Conversations that a payload does not name: asked for, and in the end always told or recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from inbound_bench import START, Bench, on_a_bench
from msgspec import structs
from test_router import Post, delivery

from actors.delivery import Ack
from crewlet import topics
from crewlet.company import Company, Contact, Route, Seat, check_text, parse_company
from crewlet.errors import ConfigError
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.types import ExternalNotification, RawWebhook
from crewlet.inbound.lookup import Found, Lookups
from crewlet.inbound.phrases import CONVERSATION_UNKNOWN, PHRASES
from crewlet.sources import Notification

SEATS = (
    Seat(handle="dev", name="Developer", contact=Contact(atlassian_account_id="ann")),
    Seat(handle="ops", name="Operations", contact=Contact(atlassian_account_id="ben")),
    Seat(handle="triage", name="Triage"),
)
TALK = "jira:POC-7"


def comment(text: str = "any news?") -> Event:
    """A comment of a Jira server: it does not name its issue."""
    author = {"name": "ben", "key": "JIRAUSER6", "displayName": "Ben"}
    self = "https://acme.example/rest/api/2/issue/10040/comment/501"
    payload = {
        "webhookEvent": "comment_created",
        "comment": {"self": self, "id": "501", "author": author, "body": text},
    }
    raw = RawWebhook.of(
        "jira", "d1", {"content-type": "application/json"}, json.dumps(payload).encode()
    )
    return Event.new(
        types.RAW_WEBHOOK, id="r", at=START, trace=Trace.root(), source="jira", body=raw
    )


def at_the_post(look: Any, play: Callable[[Post], Awaitable[None]], *routes: Route) -> None:
    async def main(bench: Bench) -> None:
        await bench.ensure("dev", "ops", "triage")
        post = Post(bench)
        post.company = Company(name="Acme", seats=SEATS, routes=routes)
        post.router._lookups = Lookups({"jira": look} if look else {})
        await bench.followers.joined(TALK, ["dev", "ops"], at=START)
        await play(post)

    on_a_bench(main)


def knows(answer: Any) -> Callable[[Mapping[str, Any]], Any]:
    return lambda metadata: answer


async def knows_soon(metadata: Mapping[str, Any]) -> Found:
    await asyncio.sleep(1.0)
    assert metadata["issue_id"] == "10040" and metadata["comment_id"] == "501"
    return Found("POC-7")


@pytest.mark.certifies(110, 117)
@pytest.mark.parametrize("look", [knows("POC-7"), knows("jira:POC-7"), knows_soon])
def test_followers_of_the_conversation_that_was_found_are_woken(look: Any) -> None:
    async def play(post: Post) -> None:
        assert await post.route(comment()) == Ack()
        assert await post.skips() == []
        (wake,) = await post.bench.mail(topics.inbox_of("dev"))  # ben is the sender
        assert wake.extra("partition_key", str, "") == TALK
        assert wake.extra("conversation_identity", str, "") == TALK
        assert wake.read(ExternalNotification).why == "follower"

    at_the_post(look, play)


def test_whom_the_lookup_finds_addressed_is_woken_and_never_the_sender() -> None:
    async def play(post: Post) -> None:
        await post.route(comment())
        (wake,) = await post.bench.mail(topics.inbox_of("dev"))
        body = wake.read(ExternalNotification)
        assert body.why == "addressed"
        assert body.notification["addressed"] == ["ann"]
        assert (await post.waiting()).get("ops") is None

    at_the_post(knows(Found("POC-7", ("ann", "BEN", "Ann"))), play)


async def never(metadata: Mapping[str, Any]) -> None:
    await asyncio.sleep(10**6)


def breaks(metadata: Mapping[str, Any]) -> None:
    raise RuntimeError("the API said 500")


@pytest.mark.certifies(127)
@pytest.mark.parametrize(
    ("look", "detail"),
    [
        (None, "has no lookup"),
        (knows(None), "does not know"),
        (knows(7), "answered int"),
        (knows(""), "a key that is none"),
        (knows(" POC-7"), "a key that is none"),
        (knows("a\nb"), "a key that is none"),
        (knows("x" * 300), "a key that is none"),
        (knows(Found(7)), "a key that is none"),  # type: ignore[arg-type]
        (breaks, "RuntimeError: the API said 500"),
        pytest.param(never, "did not answer within", id="never"),
    ],
)
def test_without_an_answer_it_is_recorded_and_only_routes_are_told(look: Any, detail: str) -> None:
    async def play(post: Post) -> None:
        assert await post.route(comment()) == Ack()
        (skip,) = await post.skips()
        assert skip.reason == CONVERSATION_UNKNOWN and skip.reason in PHRASES
        assert detail in skip.detail and "jira" in skip.detail
        assert await post.waiting() == {"triage": 1}
        assert asyncio.get_running_loop().time() < 20.0, "a delivery is held no longer than this"

    at_the_post(look, play, Route(event="jira/comment_created", to="triage"))


def test_a_payload_that_names_its_conversation_asks_nobody() -> None:
    def asked(metadata: Mapping[str, Any]) -> None:
        raise AssertionError("it was asked")

    async def play(post: Post) -> None:
        post.router._lookups = Lookups({"github": asked})
        await post.route(delivery())
        assert await post.skips() == []

    at_the_post(None, play, Route(event="github/*", to="triage"))


# -- in the company's file ------------------------------------------------------------

FILE = """
name: Acme
roles: [{name: Dev}]
integrations:
  jira: {secret: "${S}", lookup: "%s"}
"""


def company(target: str) -> Company:
    return parse_company(FILE % target, env={"S": "secret"})


def test_a_function_of_the_company_is_found_beside_its_file(tmp_path: Path) -> None:
    (tmp_path / "our_lookups.py").write_text("def issue_of(metadata):\n    return 'POC-7'\n")
    lookups, acme = Lookups({}, tmp_path), company("our_lookups:issue_of")
    lookups.check(acme)
    bare = Notification(source="jira", event_type="comment_created", verdict="lookup")
    placed = asyncio.run(lookups.named(bare, acme))
    assert placed == structs.replace(
        bare, verdict="follow", partition_key=TALK, conversation_identity=TALK
    )


@pytest.mark.parametrize("target", ["nowhere:at_all", "json", "json:nothing", "json:JSONDecoder"])
def test_a_name_that_leads_to_no_function_is_refused_at_the_start(target: str) -> None:
    with pytest.raises(ConfigError, match="lookup of jira: "):
        Lookups({}).check(company(target))


def test_an_embedders_own_comes_before_the_files() -> None:
    lookups = Lookups({"jira": knows("POC-1")})
    lookups.check(company("nowhere:at_all"))
    assert lookups.of(company("nowhere:at_all"), "jira") is not None


def test_only_vendors_whose_payloads_lack_a_conversation_may_have_one() -> None:
    assert company("a:b").integrations.lookups() == {"jira": "a:b"}
    (problem,) = check_text(FILE.replace("jira", "github") % "a:b", env={"S": "s"})
    assert "lookup" in str(problem)
