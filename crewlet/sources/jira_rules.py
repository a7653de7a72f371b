"""Jira's events: which issue one belongs to, what it tells, and whom it addresses.

One comment arrives as two deliveries: by itself (`comment_created`, on a server of one's own
without its issue) and as a change of the issue (`jira:issue_updated`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from crewlet.sources import fields
from crewlet.sources.atlassian import person
from crewlet.sources.fields import Payload
from crewlet.sources.mentions import MAX_MENTIONS, MAX_SCANNED, without_between

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_KEY: Final = re.compile(r"[A-Z][A-Z0-9_]{0,254}-[1-9][0-9]{0,14}", re.ASCII)
_IN_SELF: Final = re.compile(r"/issue/([0-9]{1,18})/(?:comment|worklog)/", re.ASCII)
_MENTION: Final = re.compile(r"\[~(?:accountid:)?([^\[\]|\r\n]{1,255})\]")
_CODE: Final = tuple(
    (re.compile(rf"\{{{word}(?::[^}}\n]{{0,200}})?\}}"), re.compile(rf"\{{{word}\}}"))
    for word in ("code", "noformat")
)
_COMMENTED: Final[Mapping[str, str]] = {
    "issue_commented": "created",
    "issue_comment_edited": "updated",
    "issue_comment_deleted": "deleted",
}
_NOISE: Final = frozenset({"rank"})
"""Fields whose change tells nobody anything: the place on a board."""

ISSUE_EVENTS: Final = frozenset({"issue_created", "issue_updated", "issue_deleted"})
COMMENT_EVENTS: Final = frozenset({"comment_created", "comment_updated", "comment_deleted"})


def event(payload: Payload) -> str:
    """`webhookEvent` without its `jira:`, '' where there is none."""
    found = fields.text(payload, "webhookEvent").removeprefix("jira:")
    return found if _NAME.fullmatch(found) else ""


def issue_event(payload: Payload) -> str:
    """The finer name of a change of an issue (`issue_assigned`); older servers send none."""
    found = fields.text(payload, "issue_event_type_name")
    return found if _NAME.fullmatch(found) else ""


def finer_event(payload: Payload) -> str:
    """What a change of an issue was, by its finer name; the name of what was done to a comment
    where an older server sends none."""
    if event(payload) != "issue_updated":
        return ""
    deed = comment_deed(payload)
    named = (name for name, done in _COMMENTED.items() if done == deed)
    return issue_event(payload) or next(named, "")


def identity(payload: Payload) -> str:
    """The key of the issue, '' where the payload names none."""
    key = fields.text(payload, "issue", "key")
    return key if _KEY.fullmatch(key) else ""


def issue_id(payload: Payload) -> str:
    """The number of the issue inside Jira: what a lookup of a bare comment starts from."""
    stated = fields.name(payload, "issue", "id") or fields.name(payload, "worklog", "issueId")
    places = (fields.short(payload, name, "self") for name in ("comment", "worklog"))
    found = (match[1] for place in places if (match := _IN_SELF.search(place)))
    return stated or next(found, "")


def sender(payload: Payload) -> tuple[str, ...]:
    """All names of whoever did it; deliveries without a `user` are from the comment's author."""
    for path in (
        ("user",),
        ("comment", "updateAuthor"),
        ("comment", "author"),
        ("worklog", "updateAuthor"),
        ("worklog", "author"),
    ):
        if names := person(payload, *path):
            return names
    return ()


def comment_deed(payload: Payload) -> str:
    """What was done to the payload's comment: created, updated, deleted, or nothing."""
    what = event(payload)
    if what in COMMENT_EVENTS:
        return what.removeprefix("comment_")
    comment = fields.obj(payload, "comment")
    if what != "issue_updated":
        return ""
    if named := _COMMENTED.get(issue_event(payload)):
        return named
    made = fields.text(comment, "created")
    if not made:
        return ""
    return "created" if made == fields.text(comment, "updated") else "updated"


def changes(payload: Payload) -> list[Payload]:
    """The entries of the change log that tell somebody something."""
    entries = fields.items(payload, "changelog", "items")
    found = [entry for entry in entries if isinstance(entry, dict)]
    return [entry for entry in found if fields.text(entry, "field").casefold() not in _NOISE]


def followed(payload: Payload) -> bool:
    """Whether this belongs to an issue in a way that its followers are told."""
    what = event(payload)
    if what in COMMENT_EVENTS:
        return what != "comment_deleted"
    if what == "issue_updated":
        return comment_deed(payload) in ("created", "updated") or bool(changes(payload))
    return what in ISSUE_EVENTS


def addressed(payload: Payload) -> Iterator[str]:
    """Whom this happening addresses, the sender included, in reading order."""
    what = event(payload)
    if what == "issue_created":
        yield from person(payload, "issue", "fields", "assignee")[:1]
        yield from mentions(fields.text(payload, "issue", "fields", "description"))
    if what == "issue_updated":
        for entry in changes(payload):
            yield from _changed(entry, payload)
    if comment_deed(payload) == "created":
        yield from mentions(fields.text(payload, "comment", "body"))


def mentions(text: str) -> tuple[str, ...]:
    """Who is called in Jira's markup: `[~accountid:ID]`, on a server `[~name]`; not in code."""
    if "[~" not in text:
        return ()
    spoken = text[:MAX_SCANNED]
    for opening, closing in _CODE:
        spoken = without_between(spoken, opening, closing)
    found: dict[str, str] = {}
    for match in _MENTION.finditer(spoken):
        name = match[1]
        if name.isprintable() and name.strip() == name:
            found.setdefault(name.casefold(), name)
        if len(found) == MAX_MENTIONS:
            break
    return tuple(found.values())


def _changed(entry: Payload, payload: Payload) -> Iterator[str]:
    """Whom one entry of a change log addresses: a new assignee, or who is newly mentioned."""
    field = fields.text(entry, "field").casefold()
    if field == "assignee":
        yield _assignee(entry, payload)
    elif field == "description":
        known = {name.casefold() for name in mentions(fields.text(entry, "fromString"))}
        for name in mentions(fields.text(entry, "toString")):
            if name.casefold() not in known:
                yield name


def _assignee(entry: Payload, payload: Payload) -> str:
    """The account id of who is assigned now: the log may say the user's name instead."""
    stated = fields.name(entry, "to")
    names = person(payload, "issue", "fields", "assignee")
    if stated and stated.casefold() in {name.casefold() for name in names}:
        return names[0]
    return fields.name(entry, "tmpToAccountId") or stated
