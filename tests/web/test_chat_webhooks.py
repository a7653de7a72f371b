"""Chats and senders of one's own at the edge: the challenge, forms, the window, no token kept."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from structlog.testing import capture_logs
from web_edge import Node, node, parsed

from crewlet.sources.edge_facts import RULE
from crewlet.sources.generic_rule import Rule, written

SECRET = b"signing-secret-8f742231b10e8888"
TOKEN = b"4xp9fdt77pncbef59f4k1qe83o"
FORM = "application/x-www-form-urlencoded"
EVENT = json.dumps(
    {
        "token": "old-verification-token",
        "type": "event_callback",
        "event_id": "Ev1",
        "event": {"type": "message", "user": "UANN", "text": "hi", "ts": "1.2", "channel": "C1"},
    }
).encode()
CHALLENGE = b'{"token": "x", "challenge": "3eZbrw1aB", "type": "url_verification"}'


def slack(body: bytes, age_s: float = 0, secret: bytes = SECRET) -> dict[str, str]:
    sent = str(int(time.time() - age_s))
    digest = hmac.new(secret, b"v0:" + sent.encode() + b":" + body, hashlib.sha256)
    return {
        "content-type": "application/json",
        "x-slack-request-timestamp": sent,
        "x-slack-signature": "v0=" + digest.hexdigest(),
    }


async def post(n: Node, path: str, body: bytes, headers: Any) -> httpx.Response:
    n.edge.secrets |= {"slack": SECRET, "mattermost": TOKEN, "generic/deploys": SECRET}
    return await n.client.post(f"/webhooks/{path}", content=body, headers=headers)


@pytest.mark.certifies(131)
def test_the_challenge_is_answered_only_to_who_signs_it_and_told_to_nobody() -> None:
    async def play() -> None:
        async with node() as n:
            for headers in ({}, slack(CHALLENGE, secret=b"other"), slack(CHALLENGE, age_s=400)):
                response = await post(n, "slack", CHALLENGE, headers)
                assert (response.status_code, parsed(response)["error"]) == (401, "signature")
                assert "3eZbrw1aB" not in response.text
            response = await post(n, "slack", CHALLENGE, slack(CHALLENGE))
            assert (response.status_code, parsed(response)) == (200, {"challenge": "3eZbrw1aB"})
            assert n.edge.accepted == []

    asyncio.run(play())


@pytest.mark.certifies(131)
@pytest.mark.parametrize(
    ("age_s", "status"), [(0, 202), (290, 202), (310, 401), (-30, 401), (-400, 401)]
)
def test_t15_only_what_was_sent_in_the_last_five_minutes_is_published(
    age_s: float, status: int
) -> None:
    async def play() -> None:
        async with node() as n:
            response = await post(n, "slack", EVENT, slack(EVENT, age_s))
            assert response.status_code == status
            assert len(n.edge.accepted) == (status == 202)

    asyncio.run(play())


def test_t15_a_header_that_stands_twice_does_not_verify() -> None:
    async def play() -> None:
        async with node() as n:
            signed = slack(EVENT)
            for name in ("x-slack-request-timestamp", "x-slack-signature"):
                doubled = [*signed.items(), (name, signed[name])]
                assert (await post(n, "slack", EVENT, doubled)).status_code == 401
            assert n.edge.accepted == []

    asyncio.run(play())


def test_t15_nobody_but_the_node_says_when_a_delivery_came() -> None:
    async def play() -> None:
        async with node() as n:
            n.edge.secrets["slack"] = SECRET
            old = slack(EVENT, age_s=4000)
            fields = {**old, ":received": old["x-slack-request-timestamp"], "host": "node"}
            lines = [f"{name}: {value}" for name, value in fields.items()]
            head = ["POST /webhooks/slack HTTP/1.1", *lines, f"content-length: {len(EVENT)}"]
            answer = await n.raw("\r\n".join(head).encode() + b"\r\n\r\n" + EVENT)
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert n.edge.accepted == []

    asyncio.run(play())


def test_an_event_is_known_by_its_own_id() -> None:
    async def play() -> None:
        async with node() as n:
            response = await post(n, "slack", EVENT, slack(EVENT))
            assert parsed(response) == {"status": "accepted", "delivery": "Ev1"}

    asyncio.run(play())


def test_a_command_gets_an_empty_200_and_is_published() -> None:
    async def play() -> None:
        async with node() as n:
            body = urlencode({"command": "/deploy", "user_id": "UANN", "trigger_id": "1"}).encode()
            headers = {**slack(body), "content-type": FORM}
            response = await post(n, "slack", body, headers)
            assert (response.status_code, response.content) == (200, b"")
            assert [vendor for vendor, *_ in n.edge.accepted] == ["slack"]

    asyncio.run(play())


@pytest.mark.certifies(131)
@pytest.mark.parametrize("kind", ["application/json", FORM])
def test_t16_mattermost_proves_itself_by_the_token_in_the_body(kind: str) -> None:
    def body(token: str) -> bytes:
        hook = {"token": token, "channel_id": "c", "user_id": "u", "post_id": "p", "text": "x"}
        return json.dumps(hook).encode() if kind != FORM else urlencode(hook).encode()

    async def play() -> None:
        async with node() as n:
            for token, status in (("", 401), ("other", 401), (TOKEN.decode(), 202)):
                sent = {"content-type": kind}
                response = await post(n, "mattermost", body(token), sent)
                assert response.status_code == status
            assert parsed(response)["delivery"] == "p"
            broken = await post(n, "mattermost", b"{", sent)
            assert broken.status_code == 401  # nobody can prove himself in what is no JSON
            assert len(n.edge.accepted) == 1

    asyncio.run(play())


@pytest.mark.certifies(131)
def test_a_sender_of_ones_own_is_proved_by_the_rule_that_the_node_knows() -> None:
    rule = Rule(header="X-Signature", prefix="sha256=", event="kind", delivery="id")
    body = b'{"kind": "failed", "id": 7}'
    right = {"x-signature": "sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest()}

    async def play() -> None:
        async with node() as n:
            n.edge.beside = {RULE: written(rule)}
            for headers in ({}, {"x-signature": "sha256=0"}, {"x-other": right["x-signature"]}):
                assert (await post(n, "generic/deploys", body, headers)).status_code == 401
            response = await post(n, "generic/deploys", body, right)
            assert parsed(response) == {"status": "accepted", "delivery": "7"}
            [(vendor, headers, _, _)] = n.edge.accepted
            assert vendor == "generic/deploys"
            assert headers[RULE] == written(rule)

    asyncio.run(play())


def test_a_sender_that_the_company_does_not_know_is_not_found() -> None:
    async def play() -> None:
        async with node() as n:
            for path in ("generic", "generic/", "generic/other", "generic/deploys/x", "deploys"):
                assert (await post(n, path, b"{}", {})).status_code == 404, path

    asyncio.run(play())


def test_no_secret_and_no_signature_is_in_a_log() -> None:
    async def play() -> None:
        async with node() as n:
            headers = slack(EVENT)
            await post(n, "slack", EVENT, headers)
            await post(n, "slack", EVENT, {**headers, "x-slack-signature": "v0=wrong-signature"})
            hook = json.dumps({"token": TOKEN.decode(), "post_id": "p"}).encode()
            await post(n, "mattermost", hook, {"content-type": "application/json"})
            await post(n, "mattermost", hook.replace(b"4xp", b"5xp"), {})
            secrets.extend([headers["x-slack-signature"], "wrong-signature", TOKEN.decode()[3:]])

    secrets = [SECRET.decode(), "old-verification-token"]
    with capture_logs() as lines:
        asyncio.run(play())
    assert lines
    assert not [secret for secret in secrets if secret in repr(lines)]
