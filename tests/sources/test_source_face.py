"""The face of all sources: signatures, delivery ids, readability, unknown vendors."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import quote_plus, urlencode

import github_payloads as own
import pytest

from crewlet import sources
from crewlet.sources import Notification, Skip, Unreadable
from crewlet.sources.phrases import NO_PARSER, PHRASES, UNREADABLE_PAYLOAD

SECRET = b"a shared secret"
BODY = b'{"action": "opened",  "a": 1}'
FORM = "application/x-www-form-urlencoded"


def signature(secret: bytes = SECRET, body: bytes = BODY) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


@pytest.mark.certifies(131)
@pytest.mark.parametrize("name", ["X-Hub-Signature-256", "x-hub-signature-256"])
def test_the_signature_over_the_exact_bytes_verifies(name: str) -> None:
    assert sources.verify("github", {name: signature()}, BODY, SECRET)


@pytest.mark.certifies(131)
@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"X-Hub-Signature-256": ""},
        {"X-Hub-Signature-256": "sha256="},
        {"X-Hub-Signature-256": signature()[:-1]},
        {"X-Hub-Signature-256": signature() + "0"},
        {"X-Hub-Signature-256": "sha256=" + signature()[7:].upper()},
        {"X-Hub-Signature-256": signature().upper()},
        {"X-Hub-Signature-256": signature()[7:]},
        {"X-Hub-Signature-256": signature(b"another secret")},
        {"X-Hub-Signature-256": signature(body=BODY.replace(b"  ", b" "))},
        {"X-Hub-Signature-256": f"{signature()}, {signature()}"},
        {"X-Hub-Signature-256": "sha256=\u00e9\udc80"},
        {"X-Hub-Signature": "sha1=" + hmac.new(SECRET, BODY, hashlib.sha1).hexdigest()},
        {"X-Hub-Signature": signature()},
    ],
)
def test_t14_any_other_signature_does_not_verify(sent: dict[str, str]) -> None:
    assert not sources.verify("github", sent, BODY, SECRET)


def test_t14_an_empty_secret_verifies_nothing() -> None:
    assert not sources.verify("github", {"X-Hub-Signature-256": signature(b"")}, BODY, b"")


@pytest.mark.field("C10")
def test_the_delivery_id_is_the_same_for_every_hook_and_redelivery() -> None:
    first = {"X-GitHub-Delivery": "G1", "X-GitHub-Hook-ID": "1"}
    second = {"x-github-delivery": "G1", "x-github-hook-id": "2"}
    assert sources.delivery_key("github", first) == "G1"
    assert sources.delivery_key("github", second) == "G1"
    assert sources.delivery_key("github", {}) == ""


def test_a_vendor_that_nobody_knows_is_a_skip_and_never_verifies() -> None:
    [skip] = sources.parse("myspace", {}, b"{}")
    assert isinstance(skip, Skip)
    assert (skip.source, skip.reason) == ("myspace", NO_PARSER)
    assert not sources.verify("myspace", {}, b"{}", SECRET)
    assert sources.delivery_key("myspace", {}) == ""
    assert not sources.readable("myspace", {}, b"{}")
    assert sources.contact_kind("myspace") == ""


def test_the_vendors_are_listed_with_their_contact() -> None:
    assert {name: sources.contact_kind(name) for name in sources.vendors()} == {
        "github": "github_login",
        "gitlab": "gitlab_username",
        "jira": "atlassian_account_id",
        "confluence": "atlassian_account_id",
        "plane": "plane_user_id",
        "slack": "slack_user_id",
        "mattermost": "mattermost_user_id",
    }


@pytest.mark.certifies(127)
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b""),
        ("application/json", b"{"),
        ("application/json", b"{'a': 1}"),
        ("application/json", b"[" * 100_000),
        ("application/json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        ("application/json", b'{"a": "\xff"}'),
        ("application/json", b'{"a": "\\ud800"}'),
        ("application/json", b'{"a": 1e400}'),
        ("application/json", b'{"a": ' + b"9" * 5000 + b"}"),
        ("application/json", b'{"a": NaN}'),
        (FORM, b""),
        (FORM, BODY),
        (FORM, b"other=%7B%7D"),
        (FORM, b"payload="),
        (FORM, b"payload=%7B%ff%7D"),
        (FORM, b"a=1&" * 64 + b"payload=%7B%7D"),
        ("text/plain", BODY),
        ("multipart/form-data; boundary=x", BODY),
    ],
)
def test_t18_what_is_not_the_format_is_unreadable_and_a_skip(
    content_type: str, body: bytes
) -> None:
    sent = own.headers("issues", content_type)
    assert not sources.readable("github", sent, body)
    with pytest.raises(Unreadable):
        sources.decode("github", sent, body)
    [skip] = sources.parse("github", sent, body)
    assert isinstance(skip, Skip)
    assert skip.reason == UNREADABLE_PAYLOAD
    assert skip.detail


@pytest.mark.field("C31")
@pytest.mark.parametrize("body", [b"{}", b"[]", b"7", b"null", b'"x"', b'{"a": "\\u0000"}'])
def test_json_of_any_kind_is_readable(body: bytes) -> None:
    assert sources.readable("github", own.headers("issues"), body)


@pytest.mark.parametrize(
    "content_type",
    ["", "application/json; charset=utf-8", "Application/JSON", "application/x+json"],
)
def test_content_types_of_json(content_type: str) -> None:
    assert sources.readable("github", own.headers("issues", content_type), BODY)


@pytest.mark.parametrize("encode", [lambda d: urlencode({"payload": d}), quote_plus])
def test_a_form_is_read_like_its_json(encode: object) -> None:
    name = "issue_comment__created.json"
    data = own.body(name).decode()
    text = encode(data)  # type: ignore[operator]
    form = text if text.startswith("payload=") else f"x=1&payload={text}&payload=ignored"
    read = sources.parse("github", own.headers("issue_comment", FORM), form.encode())
    assert read == sources.parse("github", own.headers("issue_comment"), data.encode())
    assert isinstance(read[0], Notification)


def test_header_names_are_looked_up_whatever_their_case() -> None:
    sent = {"x-github-event": "issues", "CONTENT-TYPE": "application/json"}
    [read] = sources.parse("github", sent, own.body("issues__opened.json"))
    assert read.event_type == "issues.opened"


def test_the_phrases_are_distinct() -> None:
    assert len(set(PHRASES)) == len(PHRASES) == 10
