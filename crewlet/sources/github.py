"""GitHub's webhooks: the signature, the delivery's id, and its reading as notifications."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import fields, github_rules, github_text
from crewlet.sources.compose import UNKNOWN, kind_of, refused
from crewlet.sources.content import decode, header
from crewlet.sources.fields import Payload
from crewlet.sources.notification import Notification, Parsed, Skip, Verdict
from crewlet.sources.proofs import signed

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


class GitHub:
    """The source named `github`. Stateless: one instance serves every delivery."""

    name: Final = "github"
    contact: Final = "github_login"
    kept: Final = ("x-github-delivery", "x-github-event", "x-github-hook-id")

    def verify(self, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
        """Whether X-Hub-Signature-256 is the HMAC of exactly these bytes under `secret`.

        An empty secret verifies nothing; the older SHA-1 header is never looked at.
        """
        return signed(header(headers, "X-Hub-Signature-256"), body, secret)

    def delivery_key(self, headers: Mapping[str, str]) -> str:
        """X-GitHub-Delivery: one per event, the same on every redelivery and every hook."""
        return header(headers, "X-GitHub-Delivery").strip()

    def decode(self, headers: Mapping[str, str], body: bytes) -> Any:
        """The JSON value of the body, of a form's `payload` field too. Raises Unreadable."""
        return decode(headers, body)

    def parse(self, headers: Mapping[str, str], payload: object) -> list[Parsed]:
        """What a decoded body says. More than one only for a check of several pull requests."""
        event = header(headers, "X-GitHub-Event").strip()
        if not _NAME.fullmatch(event):
            return [_refused("", f"X-GitHub-Event is {event[:80]!r}: not the name of an event")]
        if not isinstance(payload, dict) or not payload:
            return [_refused(event, f"the payload is {kind_of(payload)}, not a filled object")]
        action = _action(payload)
        named = github_rules.identities(event, payload)
        if not named and event in (*github_rules.THREADS, github_rules.COMMIT_COMMENT):
            return [_refused(_type(event, action), "the payload does not name its conversation")]
        return [_notification(event, action, payload, key) for key in named or ("",)]


def _notification(event: str, action: str, payload: Payload, identity: str) -> Notification:
    sender = fields.name(payload, "sender", "login") or UNKNOWN
    called = github_rules.addressed(event, action, payload)
    others = tuple(login for login in called if login.casefold() != sender.casefold())
    key = f"github:{identity}" if identity else ""
    metadata = github_text.metadata(event, action, payload)
    if event in github_rules.RUNS and identity:
        metadata["number"] = int(identity.rpartition("#")[2])
    return Notification(
        source=GitHub.name,
        event_type=_type(event, action),
        verdict=_verdict(event, action, others, key),
        partition_key=key,
        conversation_identity=key,
        sender=sender,
        addressed=others,
        subject=github_text.subject(event, payload, metadata),
        body=github_text.body(event, action, payload, metadata),
        lead=github_text.lead(event, action, metadata),
        metadata=metadata,
    )


def _verdict(event: str, action: str, others: tuple[str, ...], key: str) -> Verdict:
    if others:
        return "wake"
    return "follow" if key and github_rules.followed(event, action) else "nothing"


def _action(payload: Payload) -> str:
    action = fields.text(payload, "action")
    return action if _NAME.fullmatch(action) else ""


def _type(event: str, action: str) -> str:
    return f"{event}.{action}" if action else event


def _refused(event_type: str, detail: str) -> Skip:
    return refused(GitHub.name, event_type, detail)
