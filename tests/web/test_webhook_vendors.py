"""The edge of a node with every vendor: where each posts, what proves it, and what is kept."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from crewlet import sources
from crewlet.company import parse_company
from crewlet.company.keys import VENDORS
from crewlet.events.types import RawWebhook
from crewlet.node.edge import WebhookEdge
from crewlet.web import make_app

SECRET = "it is a secret to everybody"
BODY = b'{"event": "page_trashed", "page": {"id": 4711}}'
COMPANY = parse_company(
    "name: Octo\nroles: [name: Dev]\nintegrations:\n"
    + "".join(f"  {vendor}: {{secret: '${{S}}'}}\n" for vendor in VENDORS),
    env={"S": SECRET},
)


class Queue:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def publish(self, topic: str, event: Any, *, within_s: float) -> Any:
        self.events.append(event)
        return SimpleNamespace(receipt=SimpleNamespace(duplicate=False))


def post(path: str, company: Any = COMPANY, **headers: str) -> tuple[int, list[RawWebhook]]:
    """The status, and what was published."""
    queue = Queue()
    clock: Any = SimpleNamespace(now=lambda: datetime(2026, 3, 1, tzinfo=UTC))
    edge = WebhookEdge(lambda: company, queue, clock)  # type: ignore[arg-type]
    sent = {name.replace("_", "-"): value for name, value in headers.items()}

    async def play() -> int:
        transport = httpx.ASGITransport(make_app(edge))
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
            return (await client.post(path, content=BODY, headers=sent)).status_code

    return asyncio.run(play()), [event.read(RawWebhook) for event in queue.events]


def signature(prefix: str = "sha256=") -> str:
    return prefix + hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()


PROVED: dict[str, dict[str, str]] = {
    "github": {"x_hub_signature_256": signature()},
    "gitlab": {"x_gitlab_token": SECRET},
    "jira": {"x_hub_signature": signature()},
    "confluence": {"x_hub_signature": signature()},
    "plane": {"x_plane_signature": signature("")},
}


@pytest.mark.certifies(131)
@pytest.mark.parametrize("vendor", PROVED)
def test_every_vendor_is_let_in_by_its_own_proof_and_by_no_other(vendor: str) -> None:
    for other, proof in PROVED.items():
        status, published = post(f"/webhooks/{vendor}", **proof)
        same = proof == PROVED[vendor]
        assert (status, len(published)) == ((202, 1) if same else (401, 0)), other


@pytest.mark.certifies(131)
@pytest.mark.parametrize("vendor", PROVED)
def test_a_vendor_without_an_integration_is_not_there(vendor: str) -> None:
    bare = parse_company("name: Octo\nroles: [name: Dev]", env={})
    assert post(f"/webhooks/{vendor}", company=bare, **PROVED[vendor]) == (404, [])


@pytest.mark.parametrize("path", ["__class__", "secrets", "of", "myspace", "forge", "jira/x/y"])
def test_what_is_no_vendor_is_not_there(path: str) -> None:
    assert post(f"/webhooks/{path}")[0] == 404


def test_the_url_proves_and_names_what_no_header_does() -> None:
    path = f"/webhooks/confluence/page_trashed?token={SECRET}"
    status, [raw] = post(path, authorization="JWT x.y.z")
    assert status == 202
    assert raw.headers[":event"] == "page_trashed"
    [read] = sources.parse("confluence", raw.headers, b'{"page": {"id": 4711}}')
    assert read.event_type == "page_trashed"


@pytest.mark.parametrize(
    "path",
    [
        "/webhooks/confluence/page_trashed",
        "/webhooks/confluence/page_trashed?token=",
        "/webhooks/confluence/page_trashed?token=guess",
        f"/webhooks/confluence/page_trashed?token={SECRET}&token={SECRET}",
        f"/webhooks/confluence/page_trashed?Token={SECRET}",
        f"/webhooks/gitlab?token={SECRET}",
        f"/webhooks/plane?token={SECRET}",
        f"/webhooks/github?token={SECRET}",
    ],
)
def test_t14_no_other_url_proves_anything(path: str) -> None:
    assert post(path) == (401, [])


@pytest.mark.parametrize("vendor", ["github", "gitlab", "jira", "plane"])
def test_only_who_needs_it_has_the_event_in_the_url(vendor: str) -> None:
    assert post(f"/webhooks/{vendor}/page_trashed", **PROVED[vendor]) == (404, [])


@pytest.mark.certifies(131)
@pytest.mark.parametrize("vendor", PROVED)
def test_no_proof_goes_with_the_delivery(vendor: str) -> None:
    more = {"cookie": "a=b", "authorization": "Bearer x", "x_request_id": "r", "user_agent": "u"}
    path = f"/webhooks/{vendor}" + (f"?token={SECRET}" if vendor == "jira" else "")
    _, [raw] = post(path, **PROVED[vendor], **more)
    assert set(raw.headers) <= set(sources.kept_headers(vendor))
    assert raw.headers["user-agent"] == "u"
    text = repr(raw.headers)
    assert SECRET not in text and signature("") not in text
