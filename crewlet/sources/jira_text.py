"""What a person would want to read of a Jira delivery, and its facts as metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import fields
from crewlet.sources import jira_rules as rules
from crewlet.sources.atlassian import person
from crewlet.sources.changes import NOTHING, change
from crewlet.sources.fields import Payload

_REST: Final = "/rest/"
_MAX_LABEL: Final = 255  # Jira's own limit


def subject(payload: Payload) -> str:
    """The issue's summary, '' where the payload has none."""
    return fields.short(payload, "issue", "fields", "summary")


def body(payload: Payload, metadata: Mapping[str, Any]) -> str:
    """The text that was written, with what changed beside it; '' where there is neither."""
    said = ""
    if rules.comment_deed(payload) in ("created", "updated"):
        said = fields.text(payload, "comment", "body")
    elif rules.event(payload) == "issue_created":
        return _described(payload)
    if rules.event(payload) != "issue_updated":
        return said
    lines = [_change(entry) for entry in rules.changes(payload)]
    changed = "\n".join([happening(metadata), *lines]).rstrip("\n") if lines else ""
    return "\n\n".join(part for part in (said, changed) if part)


def _described(payload: Payload) -> str:
    """The description of a new issue; some deliveries have it in the change log alone."""
    if stated := fields.text(payload, "issue", "fields", "description"):
        return stated
    entries = rules.changes(payload)
    found = (fields.text(one, "toString") for one in entries if _field(one) == "description")
    return fields.first(found)


def lead(payload: Payload, metadata: Mapping[str, Any]) -> str:
    """`issue updated in POC-7 (status: To Do → Done; description)`: texts by their names alone."""
    told = [change(_field(one), *_sides(one)) for one in rules.changes(payload)]
    return happening(metadata, "; ".join(told))


def superseded(payload: Payload) -> bool:
    """A change of an issue goes stale with the next event; a comment keeps its text."""
    deed = rules.comment_deed(payload)
    return rules.event(payload) == "issue_updated" and deed not in ("created", "updated")


def occurrence(payload: Payload) -> str:
    """One comment, and one edit of it, through both of its deliveries."""
    key, deed = rules.identity(payload), rules.comment_deed(payload)
    comment = fields.name(payload, "comment", "id")
    if not (key and comment and deed):
        return ""
    edit = fields.name(payload, "comment", "updated") if deed == "updated" else ""
    return ":".join(part for part in (key, "comment", comment, deed, edit) if part)


def metadata(payload: Payload) -> dict[str, Any]:
    """The facts of a delivery: JSON values only, absent where the payload does not say."""
    issue = fields.obj(payload, "issue", "fields")
    return fields.stated(
        {
            "event": rules.event(payload),
            "issue_event": rules.issue_event(payload),
            "event_type": rules.finer_event(payload),
            "issue_key": rules.identity(payload),
            "issue_id": rules.issue_id(payload),
            "project": rules.identity(payload).rpartition("-")[0],
            "issue_type": fields.short(issue, "issuetype", "name"),
            "status": fields.short(issue, "status", "name"),
            "priority": fields.short(issue, "priority", "name"),
            "labels": [name for name in fields.items(issue, "labels") if _is_label(name)],
            "label": _labels_changed(payload),
            "assignee": next(iter(person(issue, "assignee")), ""),
            "reporter": next(iter(person(issue, "reporter")), ""),
            "restricted": True if fields.at(issue, "security") else None,
            "changed": [fields.short(entry, "field") for entry in rules.changes(payload)],
            "comment_id": fields.name(payload, "comment", "id"),
            "comment": rules.comment_deed(payload),
            "sender_name": _display_name(payload),
            "sprint": fields.short(payload, "sprint", "name"),
            "url": _url(payload),
            "timestamp": fields.epoch_ms(payload, "timestamp"),
        }
    )


def happening(metadata: Mapping[str, Any], told: str = "") -> str:
    """`issue updated in POC-7`, with what changed where that is told."""
    words = str(metadata.get("event", "")).replace("_", " ")
    place = metadata.get("issue_key", "")
    said = f"{words} in {place}" if place else words
    return f"{said} ({told})" if told else said


def _field(entry: Payload) -> str:
    return fields.short(entry, "field")


def _sides(entry: Payload) -> tuple[str, str]:
    """What it was and what it is now: by name, else by the account's id."""
    return (
        fields.text(entry, "fromString") or fields.name(entry, "tmpFromAccountId"),
        fields.text(entry, "toString") or fields.name(entry, "tmpToAccountId"),
    )


def _change(entry: Payload) -> str:
    """`- status: To Do → Done`; of a text what it is now, in full and as lines of its own."""
    before, after = _sides(entry)
    told = change(_field(entry), before, after)
    if told != _field(entry):
        return f"- {told}"
    return f"- {told} is now:\n\n{after}\n" if after.strip() else f"- {told}: {NOTHING} now"


def _is_label(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_LABEL


def _labels_changed(payload: Payload) -> list[str]:
    """The labels put on or taken off; the change log has them as one text."""
    for entry in rules.changes(payload):
        if fields.text(entry, "field") == "labels":
            before = fields.short(entry, "fromString").split()
            after = fields.short(entry, "toString").split()
            return [name for name in (*after, *before) if (name in after) != (name in before)]
    return []


def _display_name(payload: Payload) -> str:
    places = (("user",), ("comment", "updateAuthor"), ("comment", "author"), ("worklog", "author"))
    return fields.first(fields.short(payload, *path, "displayName") for path in places)


def _url(payload: Payload) -> str:
    """The issue's page: the payload has only the address of the REST interface."""
    root, rest, _ = fields.short(payload, "issue", "self").partition(_REST)
    key = rules.identity(payload)
    return f"{root}/browse/{key}" if root and rest and key else ""
