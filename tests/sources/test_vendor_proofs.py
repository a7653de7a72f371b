"""What proves a delivery of GitLab, Jira, Confluence and Plane, and what names it."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from crewlet import sources
from crewlet.sources.edge_facts import URL_PROOF

SECRET = b"a shared secret"
TOKEN = SECRET.decode()
BODY = b'{"a":  1}'


def digest(secret: bytes = SECRET, body: bytes = BODY) -> str:
    return hmac.new(secret, body, hashlib.sha256).hexdigest()


@pytest.mark.certifies(131)
@pytest.mark.parametrize(
    ("vendor", "sent"),
    [
        ("gitlab", {"X-Gitlab-Token": TOKEN}),
        ("gitlab", {"x-gitlab-token": TOKEN}),
        ("jira", {"X-Hub-Signature": f"sha256={digest()}"}),
        ("jira", {URL_PROOF: TOKEN}),
        ("confluence", {"x-hub-signature": f"sha256={digest()}"}),
        ("confluence", {URL_PROOF: TOKEN, "Authorization": "JWT whatever"}),
        ("plane", {"X-Plane-Signature": digest()}),
    ],
)
def test_what_the_vendor_sends_verifies(vendor: str, sent: dict[str, str]) -> None:
    assert sources.verify(vendor, sent, BODY, SECRET)


@pytest.mark.certifies(131)
@pytest.mark.parametrize(
    ("vendor", "sent"),
    [
        *[(vendor, {}) for vendor in ("gitlab", "jira", "confluence", "plane")],
        ("gitlab", {"X-Gitlab-Token": ""}),
        ("gitlab", {"X-Gitlab-Token": TOKEN + " "}),
        ("gitlab", {"X-Gitlab-Token": TOKEN[:-1]}),
        ("gitlab", {"X-Gitlab-Token": TOKEN.upper()}),
        ("gitlab", {"X-Gitlab-Token": f"{TOKEN}, {TOKEN}"}),
        ("gitlab", {"X-Gitlab-Token": "\u00e9\udc80"}),
        ("gitlab", {URL_PROOF: TOKEN}),
        ("jira", {"X-Hub-Signature": digest()}),
        ("jira", {"X-Hub-Signature": f"sha256={digest(body=BODY + b' ')}"}),
        ("jira", {"X-Hub-Signature": f"sha256={digest(b'other')}"}),
        ("jira", {"X-Hub-Signature": "sha256=", URL_PROOF: TOKEN}),
        ("jira", {"X-Hub-Signature": f"sha256={digest(b'other')}", URL_PROOF: TOKEN}),
        ("jira", {"X-Hub-Signature-256": f"sha256={digest()}"}),
        ("jira", {URL_PROOF: ""}),
        ("jira", {"token": TOKEN, "Authorization": f"Bearer {TOKEN}"}),
        ("confluence", {URL_PROOF: TOKEN + "x"}),
        ("confluence", {"Authorization": f"JWT {TOKEN}"}),
        ("plane", {"X-Plane-Signature": f"sha256={digest()}"}),
        ("plane", {"X-Plane-Signature": digest().upper()}),
        ("plane", {URL_PROOF: TOKEN}),
    ],
)
def test_t14_anything_else_does_not_verify(vendor: str, sent: dict[str, str]) -> None:
    assert not sources.verify(vendor, sent, BODY, SECRET)


@pytest.mark.parametrize(
    ("vendor", "sent"),
    [
        ("gitlab", {"X-Gitlab-Token": ""}),
        ("jira", {"X-Hub-Signature": f"sha256={digest(b'')}"}),
        ("confluence", {URL_PROOF: ""}),
        ("plane", {"X-Plane-Signature": digest(b"")}),
    ],
)
def test_t14_an_empty_secret_verifies_nothing(vendor: str, sent: dict[str, str]) -> None:
    assert not sources.verify(vendor, sent, BODY, b"")


@pytest.mark.parametrize(
    ("secret", "stated"), [("schlüssel", "schlüssel"), ("schlüssel", "schlÃ¼ssel")]
)
def test_a_token_beyond_ascii_is_read_from_a_url_and_from_a_header(
    secret: str, stated: str
) -> None:
    assert sources.verify("confluence", {URL_PROOF: stated}, BODY, secret.encode())


@pytest.mark.certifies(130)
@pytest.mark.parametrize(
    ("vendor", "sent", "key"),
    [
        ("gitlab", {"Idempotency-Key": "i-1", "X-Gitlab-Event-UUID": "u-1"}, "i-1"),
        ("gitlab", {"X-Gitlab-Event-UUID": " u-1 "}, "u-1"),
        ("jira", {"X-Atlassian-Webhook-Identifier": "w-1"}, "w-1"),
        ("confluence", {"X-Request-Id": "r-1"}, "r-1"),
        ("plane", {"x-plane-delivery": "d-1"}, "d-1"),
        *[(vendor, {}, "") for vendor in ("gitlab", "jira", "confluence", "plane")],
    ],
)
def test_the_delivery_is_named_as_its_vendor_names_it(
    vendor: str, sent: dict[str, str], key: str
) -> None:
    assert sources.delivery_key(vendor, sent) == key
    kept = set(sources.kept_headers(vendor))
    assert {name.lower() for name in sent} <= kept


@pytest.mark.certifies(131)
@pytest.mark.parametrize("vendor", sources.vendors())
def test_nothing_that_proves_is_ever_kept(vendor: str) -> None:
    secret = ("token", "signature", "authorization", "cookie", "secret")
    kept = sources.kept_headers(vendor)
    assert not [name for name in kept if any(word in name for word in secret)]
    assert [name.lower() for name in kept] == list(kept)
