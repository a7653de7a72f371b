"""Jira's webhooks, of the cloud and of servers: the proof, the id, the notification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import atlassian, jira_text
from crewlet.sources import jira_rules as rules
from crewlet.sources.compose import Reading, compose, kind_of, refused
from crewlet.sources.content import decode, header
from crewlet.sources.notification import Parsed


class Jira:
    """The source named `jira`. Stateless: one instance serves every delivery."""

    name: Final = "jira"
    contact: Final = "atlassian_account_id"
    kept: Final = ("x-atlassian-webhook-identifier",)

    def verify(self, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
        """X-Hub-Signature; without that header the `token` of the URL."""
        return atlassian.verified(headers, body, secret)

    def delivery_key(self, headers: Mapping[str, str]) -> str:
        """X-Atlassian-Webhook-Identifier: the same on every retry; a server sends none."""
        return header(headers, "X-Atlassian-Webhook-Identifier").strip()

    def decode(self, headers: Mapping[str, str], body: bytes) -> Any:
        """The JSON value of the body. Raises Unreadable."""
        return decode(headers, body)

    def parse(self, headers: Mapping[str, str], payload: object) -> list[Parsed]:
        """What a decoded body says: always one."""
        if not isinstance(payload, dict) or not payload:
            return [refused(self.name, "", f"the payload is {kind_of(payload)}, no filled object")]
        event = rules.event(payload)
        if not event:
            return [refused(self.name, "", "webhookEvent does not name an event")]
        identity = rules.identity(payload)
        if not identity and event in rules.ISSUE_EVENTS:
            return [refused(self.name, event, "the payload does not name its issue")]
        facts = jira_text.metadata(payload)
        read = Reading(
            event_type=event,
            identity=identity,
            sender=rules.sender(payload),
            called=tuple(rules.addressed(payload)),
            told=rules.followed(payload),
            lookup=event == "comment_created",
            superseded=jira_text.superseded(payload),
            occurrence=jira_text.occurrence(payload),
            subject=jira_text.subject(payload),
            body=jira_text.body(payload, facts),
            happening=jira_text.lead(payload, facts)
            if jira_text.superseded(payload)
            else jira_text.happening(facts),
            metadata=facts,
        )
        return [compose(self.name, read)]
