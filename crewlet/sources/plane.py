"""Plane's webhooks: the signature, the delivery's id, and its reading as a notification."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any, Final

from crewlet.sources import fields
from crewlet.sources import plane_rules as rules
from crewlet.sources.changes import change, is_bookkeeping, spoken
from crewlet.sources.compose import Reading, compose, kind_of, refused
from crewlet.sources.content import decode, header
from crewlet.sources.fields import Payload
from crewlet.sources.notification import Parsed
from crewlet.sources.proofs import signed

_TAG: Final = re.compile(r"<[^<>]{0,2000}>")
_END: Final = re.compile(r"<br\s{0,9}/?>|</(?:p|div|li|h[1-6]|pre|blockquote|tr)>", re.IGNORECASE)
"""Where a line of a page ends."""

_DEEDS: Final[Mapping[str, str]] = {"create": "created", "update": "updated", "delete": "deleted"}
"""Older releases name the deed and not that it is done."""

_ITEM_EVENTS: Final = frozenset({"issue", "workitem"})
_DATES: Final = ("updated_at", "last_activity_at", "created_at")


class Plane:
    """The source named `plane`. Stateless: one instance serves every delivery."""

    name: Final = "plane"
    contact: Final = "plane_user_id"
    kept: Final = ("x-plane-delivery", "x-plane-event")

    def verify(self, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
        """Whether X-Plane-Signature is the HMAC-SHA256, in hex, of exactly these bytes."""
        return signed(header(headers, "X-Plane-Signature"), body, secret, prefix="")

    def delivery_key(self, headers: Mapping[str, str]) -> str:
        """X-Plane-Delivery: one per delivery, the same on its retries."""
        return header(headers, "X-Plane-Delivery").strip()

    def decode(self, headers: Mapping[str, str], body: bytes) -> Any:
        """The JSON value of the body. Raises Unreadable."""
        return decode(headers, body)

    def parse(self, headers: Mapping[str, str], payload: object) -> list[Parsed]:
        """What a decoded body says: always one."""
        if not isinstance(payload, dict) or not payload:
            return [refused(self.name, "", f"the payload is {kind_of(payload)}, no filled object")]
        event = rules.event(headers, payload)
        if not event:
            return [refused(self.name, "", "neither the body nor the header names an event")]
        identity = rules.identity(event, payload)
        if not identity and rules.kind(event) in _ITEM_EVENTS:
            return [refused(self.name, event, "the payload does not name its work item")]
        facts = _metadata(event, payload)
        happening = _happening(event, facts)
        read = Reading(
            event_type=event,
            identity=identity,
            sender=rules.sender(event, payload),
            called=tuple(rules.addressed(event, payload)) if identity else (),
            told=rules.followed(event),
            superseded=rules.kind(event) in _ITEM_EVENTS and not rules.is_creation(event, payload),
            occurrence=_occurrence(event, identity, payload),
            subject=fields.short(payload, "data", "name"),
            body=_body(event, payload, happening),
            happening=happening,
            metadata=facts,
        )
        return [compose(self.name, read)]


def _occurrence(event: str, identity: str, payload: Payload) -> str:
    """One comment, and one assignment, arrive twice under two delivery ids."""
    comment = rules.uuid(rules.comment(payload), "id")
    at = fields.short(payload, "data", "updated_at")
    if comment and event.endswith(".created"):
        return f"{identity}:comment:{comment}" if identity else ""
    if identity and at and rules.field(payload) == "assignees":
        return f"{identity}:assignees:{at}"
    return ""


def _body(event: str, payload: Payload, happening: str) -> str:
    """The text that was written, '' where nothing was."""
    if comment := rules.comment(payload):
        return _plain(comment, "comment")
    data = fields.obj(payload, "data")
    if rules.kind(event).endswith(".link"):
        return _link(data, happening)
    if rules.is_creation(event, payload):
        return _plain(data, "description")
    if rules.field(payload) == "description" and (said := _plain(data, "description")):
        return f"{happening}\n\n{said}"
    return ""


def _plain(thing: Payload, text: str) -> str:
    """A text without its markup: Plane's own reading of it still has the character references."""
    stripped = fields.text(thing, f"{text}_stripped")
    if not stripped.strip():
        lines = _END.sub("\n", fields.text(thing, f"{text}_html"))
        stripped = _TAG.sub("", lines).strip()
    return unescape(stripped)


def _link(data: Payload, happening: str) -> str:
    """`workitem link created: The log https://…`."""
    told = (fields.short(data, "title").strip(), fields.short(data, "url"))
    return ": ".join(filter(None, (happening, " ".join(filter(None, told)))))


def _metadata(event: str, payload: Payload) -> dict[str, Any]:
    """The facts of a delivery: JSON values only, absent where the payload does not say."""
    data, activity = fields.obj(payload, "data"), fields.obj(payload, "activity")
    identity = rules.identity(event, payload)
    stated = {
        "event": rules.kind(event),
        "action": event.rpartition(".")[2],
        "version": "v2" if rules.is_new(payload) else "v1",
        "page" if event.startswith("page") else "work_item": identity,
        "project": rules.uuid(data, "project") or rules.uuid(data, "project_id"),
        "workspace": rules.uuid(payload, "workspace_id"),
        "sequence": fields.number(data, "sequence_id"),
        "state": fields.short(data, "state", "name"),
        "priority": fields.short(data, "priority"),
        "labels": fields.names(data, ["labels"], "name"),
        "field": rules.field(payload),
        "old_value": _value(activity, "old_value", data),
        "new_value": _value(activity, "new_value", data),
        "changed": [name[:64] for name in list(fields.obj(payload, "previous_attributes"))[:50]],
        "comment_id": rules.uuid(rules.comment(payload), "id"),
        "access": fields.short(rules.comment(payload), "access"),
        "sender_name": fields.short(activity, "actor", "display_name"),
        "timestamp": fields.first(fields.moment(data, key) for key in _DATES),
    }
    return fields.stated({key: rules.said(value) for key, value in stated.items()})


def _value(activity: Payload, key: str, data: Payload) -> str:
    """One side of a change where it is a short text; of a list of people their names, as far as
    the item knows them. Other lists of ids say little."""
    people = fields.items(activity, key)
    if people and rules.field({"activity": activity}) == "assignees":
        named = {fields.text(one, "id"): one for one in fields.items(data, "assignees")}
        ids = [who for who in people if isinstance(who, str)]
        return ", ".join(fields.name(named.get(who), "display_name") or who[:64] for who in ids)
    value = fields.text(activity, key)
    return value if len(value) <= fields.MAX_TEXT and "<" not in value else ""


def _happening(event: str, metadata: Mapping[str, Any]) -> str:
    """`issue updated (state: Todo → In Progress)`."""
    field = "" if event.startswith("issue_comment") else metadata.get("field", "")
    deed = str(metadata.get("action", ""))
    done = "updated" if field else _DEEDS.get(deed, deed)
    words = f"{rules.kind(event)} {done}".replace(".", " ").replace("_", " ")
    if field:
        before, after = (str(metadata.get(key, "")) for key in ("old_value", "new_value"))
        told = change(field, before, after) if before or after else field
        return f"{words} ({told})"
    changed = [spoken(name) for name in metadata.get("changed", ()) if not is_bookkeeping(name)]
    return f"{words} (changed: {', '.join(changed)})" if changed else words
