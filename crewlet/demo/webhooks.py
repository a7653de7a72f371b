"""The demo's outside world: a few signed GitHub deliveries, posted over HTTP like real ones."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import urllib.request
import uuid
from collections.abc import Sequence
from typing import Any, Final

import structlog

REPOSITORY: Final = {"full_name": "octo/site", "name": "site", "owner": {"login": "octo"}}

log = structlog.get_logger(__name__)


def deliveries() -> Sequence[tuple[str, dict[str, Any]]]:
    """(event, payload): an issue is opened, assigned and discussed; a review is asked for."""
    issue = {
        "number": 12,
        "title": "The sign-up page is blank on small screens",
        "body": "Seen on a phone: the form does not show.",
        "user": {"login": "visitor"},
        "labels": [{"name": "bug"}],
        "assignees": [],
        "html_url": "https://github.example/octo/site/issues/12",
    }
    assigned = {**issue, "assignees": [{"login": "octo-dev"}]}
    pull = {
        "number": 13,
        "title": "Show the form on small screens",
        "body": "Closes #12.",
        "user": {"login": "octo-dev"},
        "requested_reviewers": [{"login": "octo-qa"}],
        "assignees": [],
        "html_url": "https://github.example/octo/site/pull/13",
    }
    comment = {
        "id": 1,
        "body": "@octo-dev it is only this one page, I think.",
        "user": {"login": "visitor"},
        "html_url": "https://github.example/octo/site/issues/12#issuecomment-1",
    }
    visitor, lead = {"login": "visitor"}, {"login": "octo-boss"}
    return (
        ("issues", _about("opened", visitor, issue=issue)),
        ("issues", _about("assigned", lead, issue=assigned, assignee={"login": "octo-dev"})),
        ("issue_comment", _about("created", visitor, issue=assigned, comment=comment)),
        (
            "pull_request",
            _about(
                "review_requested",
                {"login": "octo-dev"},
                number=13,
                pull_request=pull,
                requested_reviewer={"login": "octo-qa"},
            ),
        ),
    )


def _about(action: str, sender: dict[str, str], **rest: Any) -> dict[str, Any]:
    return {"action": action, "repository": REPOSITORY, "sender": sender, **rest}


async def post_all(url: str, secret: bytes) -> None:
    """Post them one after another; what the edge answers is logged."""
    for event, payload in deliveries():
        status = await asyncio.to_thread(_post, f"{url}/webhooks/github", event, payload, secret)
        log.info("demo_delivery_posted", github_event=event, status=status)
        await asyncio.sleep(0.2)


def _post(url: str, event: str, payload: dict[str, Any], secret: bytes) -> int:
    body = json.dumps(payload).encode()
    request = urllib.request.Request(url, data=body, method="POST")  # noqa: S310 - our own edge
    request.add_header("Content-Type", "application/json")
    request.add_header("X-GitHub-Event", event)
    request.add_header("X-GitHub-Delivery", str(uuid.uuid4()))
    signature = hmac.new(secret, body, hashlib.sha256).hexdigest()
    request.add_header("X-Hub-Signature-256", f"sha256={signature}")
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        return int(answer.status)
