"""Confluence's webhooks, of servers, Connect and Forge: the proof, the id, the notification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import atlassian, fields
from crewlet.sources import confluence_rules as rules
from crewlet.sources.compose import Reading, compose, kind_of, refused
from crewlet.sources.content import decode, header
from crewlet.sources.edge_facts import PATH_EVENT
from crewlet.sources.fields import Payload
from crewlet.sources.notification import Parsed

_PAGES: Final = frozenset({"page", "blog"})
_NOUNS: Final = _PAGES | {"comment"}


class Confluence:
    """The source named `confluence`. Stateless: one instance serves every delivery."""

    name: Final = "confluence"
    contact: Final = "atlassian_account_id"
    kept: Final = ("x-request-id", "x-event-key", PATH_EVENT)

    def verify(self, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
        """X-Hub-Signature; without that header the `token` of the URL."""
        return atlassian.verified(headers, body, secret)

    def delivery_key(self, headers: Mapping[str, str]) -> str:
        """A server's X-Request-Id. The cloud sends none: its deliveries count one by one."""
        return header(headers, "X-Request-Id").strip()

    def decode(self, headers: Mapping[str, str], body: bytes) -> Any:
        """The JSON value of the body. Raises Unreadable."""
        return decode(headers, body)

    def parse(self, headers: Mapping[str, str], payload: object) -> list[Parsed]:
        """What a decoded body says: always one."""
        if not isinstance(payload, dict) or not payload:
            return [refused(self.name, "", f"the payload is {kind_of(payload)}, no filled object")]
        event = rules.event(headers, payload)
        if not event:
            return [refused(self.name, "", "neither the body nor the URL names an event")]
        identity = rules.identity(payload)
        bare = event == "comment_created" and bool(rules.identifier(rules.comment(payload)))
        if not identity and not rules.comment(payload) and rules.noun(event) in _NOUNS:
            return [refused(self.name, event, "the payload does not name its page")]
        facts = _metadata(rules.vendors_name(headers, payload), payload)
        read = Reading(
            event_type=event,
            identity=identity,
            sender=rules.sender(payload),
            called=tuple(rules.addressed(event, payload)) if identity else (),
            told=rules.followed(event, payload),
            lookup=bare,
            subject=fields.short(rules.page(payload), "title"),
            happening=_happening(event, facts),
            metadata=facts,
        )
        return [compose(self.name, read)]


def _metadata(stated: str, payload: Payload) -> dict[str, Any]:
    """The facts of a delivery: JSON values only, absent where the payload does not say."""
    page, comment = rules.page(payload), rules.comment(payload)
    above = fields.items(comment, "ancestors")
    return fields.stated(
        {
            "event": stated,
            "page_id": rules.identifier(page),
            "title": fields.short(page, "title"),
            "space": _space(page, payload),
            "version": fields.number(page, "version") or fields.number(page, "version", "number"),
            "author": fields.name(page, "creatorAccountId")
            or fields.name(page, "history", "createdBy", "accountId"),
            "comment_id": rules.identifier(comment),
            "in_reply_to": rules.identifier(above[-1]) if above else "",
            "participants": _authors(above),
            "task_status": fields.short(payload, "task", "status"),
            "task_due": fields.moment(payload, "task", "dueDate"),
            "assignee": fields.name(payload, "task", "assignee"),
            "trigger": fields.short(payload, "updateTrigger"),
            "url": fields.first((fields.short(comment, "self"), fields.short(page, "self"))),
            "timestamp": fields.epoch_ms(payload, "timestamp")
            or fields.moment(payload, "eventCreatedDate"),
        }
    )


def _space(page: Payload, payload: Payload) -> str:
    return fields.first(
        (
            fields.short(page, "spaceKey"),
            fields.short(page, "space", "key"),
            fields.short(payload, "content", "space", "key"),
            fields.short(payload, "space", "key"),
        )
    )


def _authors(contents: list[Any]) -> list[str]:
    """Who wrote the comments above: they may want to know, and nobody addresses them."""
    found = (fields.name(each, "history", "createdBy", "accountId") for each in contents)
    return list(dict.fromkeys(name for name in found if name))


def _happening(event: str, metadata: Mapping[str, Any]) -> str:
    """`comment 4712 created on page 838205441 in SP: A brand new page`. No delivery has a text:
    whoever acts on it looks the page or the comment up by its id."""
    noun, _, deed = event.rpartition("_")
    is_page = noun in _PAGES
    said = [noun, metadata.get("page_id" if is_page else "comment_id", ""), deed]
    if is_page and deed == "updated" and metadata.get("version"):
        said.append(f"to version {metadata['version']}")
    if noun == "comment" and metadata.get("in_reply_to"):
        said.append(f"in reply to {metadata['in_reply_to']}")
    if not is_page and metadata.get("page_id"):
        said.append(f"on page {metadata['page_id']}")
    if space := metadata.get("space"):
        said.append(f"in {space}")
    told = " ".join(filter(None, said)).replace("_", " ")
    if title := metadata.get("title"):
        told += f": {title}"
    elif metadata.get("page_id"):
        told += " (title unknown)"
    return f"{told} ({facts})" if (facts := _task(metadata)) else told


def _task(metadata: Mapping[str, Any]) -> str:
    """`task: incomplete; assignee: 5b10a2844c20165700ede21a; due: 2026-03-01T10:00:00Z`."""
    named = (("task", "task_status"), ("assignee", "assignee"), ("due", "task_due"))
    return "; ".join(f"{name}: {metadata[key]}" for name, key in named if metadata.get(key))
