"""Mattermost's token: in the body or the header, of one hook or of several."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import chat_payloads as chats
import pytest

from crewlet import sources
from crewlet.sources import Notification

TOKEN = "4xp9fdt77pncbef59f4k1qe83o"
SECRET = TOKEN.encode()
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HOOK = {**chats.payload("mattermost", "outgoing_webhook"), "token": TOKEN}
JSON_BODY = json.dumps(HOOK).encode()
FORM_BODY = urlencode(HOOK).encode()


def verify(headers: dict[str, str], body: bytes, secret: bytes = SECRET) -> bool:
    return sources.verify("mattermost", headers, body, secret)


@pytest.mark.certifies(131)
def test_the_token_in_the_body_verifies() -> None:
    assert verify(chats.JSON, JSON_BODY)
    assert verify(FORM, FORM_BODY)


@pytest.mark.certifies(131)
def test_each_of_several_hooks_verifies() -> None:
    secret = f"another,{TOKEN} , third".encode()
    assert verify(chats.JSON, JSON_BODY, secret)
    assert verify(FORM, urlencode({**HOOK, "token": "third"}).encode(), secret)
    assert not verify(FORM, urlencode({**HOOK, "token": secret.decode()}).encode(), secret)


def test_a_slash_command_may_state_it_in_the_header() -> None:
    body = urlencode({**HOOK, "token": ""}).encode()
    assert verify({**FORM, "Authorization": f"Token {TOKEN}"}, body)
    assert not verify({**FORM, "Authorization": f"Token {TOKEN}x"}, body)


@pytest.mark.certifies(131)
@pytest.mark.parametrize(
    "body",
    [
        json.dumps({**HOOK, "token": token}).encode()
        for token in ("", TOKEN[:-1], TOKEN + "0", TOKEN.upper(), " " + TOKEN, None, 7, [TOKEN])
    ]
    + [b"", b"{", b"[]", b"7", b"null", b"[" * 100_000, json.dumps({"x": HOOK}).encode()],
)
def test_t16_any_other_does_not(body: bytes) -> None:
    assert not verify(chats.JSON, body)


@pytest.mark.parametrize("secret", [b"", b",", b" , "])
def test_t16_an_empty_secret_verifies_nothing(secret: bytes) -> None:
    assert not verify(chats.JSON, json.dumps({**HOOK, "token": ""}).encode(), secret)
    assert not verify(chats.JSON, json.dumps({**HOOK, "token": ","}).encode(), secret)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (chats.JSON, JSON_BODY),
        (chats.JSON, json.dumps(HOOK, indent=4).encode()),
        (chats.JSON, json.dumps(HOOK, separators=(",", ":")).encode()),
        (FORM, FORM_BODY),
        (FORM, FORM_BODY.replace(b"token", b"x=1&token", 1)),
    ],
)
def test_t16_the_token_is_not_published(headers: dict[str, str], body: bytes) -> None:
    kept = sources.published("mattermost", body)
    assert SECRET not in kept
    assert b"token" in kept
    assert sources.parse("mattermost", headers, kept) == sources.parse("mattermost", headers, body)


def test_a_text_about_tokens_stays_as_it_is() -> None:
    value = {**HOOK, "text": 'my "token": "abc" see https://a.example/?a=1&token=abc&x'}
    [read] = chats.read_all("mattermost", value)
    body = json.dumps(value).encode()
    assert sources.parse("mattermost", chats.JSON, sources.published("mattermost", body)) == [read]


def test_json_and_form_are_read_alike() -> None:
    [as_json] = sources.parse("mattermost", chats.JSON, JSON_BODY)
    [as_form] = sources.parse("mattermost", FORM, FORM_BODY)
    assert as_json == as_form
    assert isinstance(as_json, Notification)
    assert as_json.body == "deploy please"
