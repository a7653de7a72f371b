"""GitLab's webhooks: the secret token, the delivery's id, and its reading as a notification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import gitlab_rules as rules
from crewlet.sources import gitlab_text
from crewlet.sources.compose import Reading, compose, kind_of, refused
from crewlet.sources.content import decode, header
from crewlet.sources.fields import MAX_TEXT
from crewlet.sources.notification import Parsed
from crewlet.sources.proofs import is_token


class GitLab:
    """The source named `gitlab`. Stateless: one instance serves every delivery."""

    name: Final = "gitlab"
    contact: Final = "gitlab_username"
    kept: Final = ("x-gitlab-event", "x-gitlab-event-uuid", "idempotency-key")

    def verify(self, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
        """Whether X-Gitlab-Token is the secret: GitLab signs nothing, so the bytes are not
        covered. An empty secret verifies nothing."""
        return is_token(header(headers, "X-Gitlab-Token"), secret)

    def delivery_key(self, headers: Mapping[str, str]) -> str:
        """Idempotency-Key, the same on every retry; on older servers X-Gitlab-Event-UUID."""
        retried = header(headers, "Idempotency-Key").strip()
        return retried or header(headers, "X-Gitlab-Event-UUID").strip()

    def decode(self, headers: Mapping[str, str], body: bytes) -> Any:
        """The JSON value of the body. Raises Unreadable."""
        return decode(headers, body)

    def parse(self, headers: Mapping[str, str], payload: object) -> list[Parsed]:
        """What a decoded body says: always one."""
        if not isinstance(payload, dict) or not payload:
            return [refused(self.name, "", f"the payload is {kind_of(payload)}, no filled object")]
        kind, action = rules.kind(payload), rules.action(payload)
        if not kind:
            return [refused(self.name, "", "neither object_kind nor event_name names an event")]
        event_type = f"{kind}.{action}" if action else kind
        identity = rules.identity(payload)
        if not identity and kind in (*rules.ITEMS, "note"):
            return [refused(self.name, event_type, "the payload does not name its conversation")]
        facts = gitlab_text.metadata(header(headers, "X-Gitlab-Event")[:MAX_TEXT], payload)
        read = Reading(
            event_type=event_type,
            identity=identity,
            sender=rules.sender(payload),
            called=tuple(rules.addressed(payload)),
            told=rules.followed(payload),
            superseded=gitlab_text.superseded(payload),
            occurrence=gitlab_text.occurrence(payload),
            subject=gitlab_text.subject(payload, facts),
            body=gitlab_text.body(payload, facts),
            happening=gitlab_text.happening(facts),
            metadata=facts,
        )
        return [compose(self.name, read)]
