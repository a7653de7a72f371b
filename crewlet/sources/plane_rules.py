"""Plane's events, of both versions of its webhooks: which item or page, and who is addressed.

Version 1 states `event` and `action` and what changed as `activity`; one change may come twice,
under two names of its field. Version 2 states `workitem.updated` and `previous_attributes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from crewlet.sources import fields
from crewlet.sources.content import header
from crewlet.sources.fields import Payload
from crewlet.sources.mentions import MAX_MENTIONS, MAX_SCANNED

_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_DOTTED: Final = re.compile(r"[a-z][a-z0-9_]{0,63}(?:\.[a-z][a-z0-9_]{0,63}){0,4}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MENTION: Final = re.compile(r"<mention-component\b([^<>]{0,2000})>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"""\b(entity_identifier|entity_name)=["']([^"'<>]{1,64})["']""")
_NULL: Final = "None"
"""Version 2 writes a missing value as this text."""

_CREATED: Final = frozenset({"created", "create"})
_TOLD: Final = _CREATED | {"updated", "update"}
"""What those already in the conversation want to hear; older versions say `update`."""

_OLD_KINDS: Final[Mapping[str, str]] = {
    "issue": "id",
    "issue_comment": "issue",
    "page": "id",
    "page_comment": "page",
}
"""Events of version 1 that belong to a conversation, and the field with its id."""

_ITEMS: Final = ("workitem", "page")
_ASSIGNEES: Final = frozenset({"assignees", "assignee_ids"})


def is_new(payload: Payload) -> bool:
    """Whether it is of version 2."""
    return fields.text(payload, "version") == "v2"


def event(headers: Mapping[str, str], payload: Payload) -> str:
    """`issue_comment.created` or `workitem.updated`. Of the header where the body has none that
    can be read: some releases send the name of a constant instead."""
    stated = fields.text(payload, "event")
    name = stated if _DOTTED.fullmatch(stated) else header(headers, "X-Plane-Event").strip()
    if not _DOTTED.fullmatch(name):
        return ""
    action = fields.text(payload, "action")
    return f"{name}.{action}" if _WORD.fullmatch(action) and not is_new(payload) else name


def kind(name: str) -> str:
    """What an event is about: `workitem.comment` of `workitem.comment.created`."""
    return name.rpartition(".")[0] or name


def identity(name: str, payload: Payload) -> str:
    """The id of the work item or page, '' where the payload does not name it."""
    data = fields.obj(payload, "data")
    if not is_new(payload):
        key = _OLD_KINDS.get(kind(name), "")
        return uuid(data, key) or uuid(data, key, "id") if key else ""
    what = name.partition(".")[0]
    if what not in _ITEMS:
        return ""
    key = "issue_id" if what == "workitem" else "page_id"
    inner = (uuid(data, "comment", key), uuid(data, key), uuid(payload, "entity_id"))
    return fields.first((*inner, uuid(data, "id") if kind(name) == what else ""))


def uuid(payload: object, *path: str) -> str:
    """The UUID at `path`, '' where there is none."""
    found = fields.text(payload, *path)
    return found if _UUID.fullmatch(found) else ""


def comment(payload: Payload) -> Payload:
    """The comment of a payload, {} without one."""
    if is_new(payload):
        return fields.obj(payload, "data", "comment")
    spoken = fields.text(payload, "event").endswith("comment")
    return fields.obj(payload, "data") if spoken else {}


def sender(name: str, payload: Payload) -> tuple[str, ...]:
    """Whoever did it. Who created the item did not thereby change it."""
    data = fields.obj(payload, "data")
    stated = [
        uuid(payload, "activity", "actor", "id"),
        uuid(comment(payload), "actor_id"),
        uuid(comment(payload), "actor"),
        uuid(data, "updated_by_id"),
        uuid(data, "updated_by"),
    ]
    if _verb(name) in _CREATED:
        stated += [uuid(data, "created_by_id"), uuid(data, "created_by")]
    found = fields.first(stated)
    return (found,) if found else ()


def field(payload: Payload) -> str:
    """The field that a delivery of version 1 says has changed; the two of one change are one."""
    found = fields.short(payload, "activity", "field")
    return "assignees" if found in _ASSIGNEES else found


def is_creation(name: str, payload: Payload) -> bool:
    """Whether the item itself is new: `created` is also said of what is added to an old one."""
    return _verb(name) in _CREATED and not field(payload)


def followed(name: str) -> bool:
    """Whether those in the conversation are told."""
    return _verb(name) in _TOLD


def addressed(name: str, payload: Payload) -> Iterator[str]:
    """Whom this happening addresses, the sender included, in reading order."""
    what, data = kind(name), fields.obj(payload, "data")
    if comment(payload) and _verb(name) in _CREATED:
        yield from mentions(fields.text(comment(payload), "comment_html"))
    elif what == "issue" and is_creation(name, payload):
        yield from _people(fields.items(data, "assignees"))
        yield from mentions(fields.text(data, "description_html"))
    elif what == "issue" and field(payload) == "assignees":
        yield from _assigned(fields.obj(payload, "activity"))
    elif name == "workitem.created":
        yield from _people(fields.items(data, "assignee_ids"))
    elif name == "workitem.updated":
        before = fields.at(payload, "previous_attributes", "assignee_ids")
        if isinstance(before, list):
            yield from _joined(before, fields.items(data, "assignee_ids"))


def mentions(html: str) -> tuple[str, ...]:
    """The users that a text calls by name: Plane writes them as elements of its own."""
    found: dict[str, None] = {}
    for match in _MENTION.finditer(html[:MAX_SCANNED]):
        stated = dict(_ATTRIBUTE.findall(match[1]))
        who = stated.get("entity_identifier", "")
        if _UUID.fullmatch(who) and stated.get("entity_name", "user_mention") == "user_mention":
            found.setdefault(who)
        if len(found) == MAX_MENTIONS:
            break
    return tuple(found)


def said(value: object) -> object:
    """A value of version 2 without its texts that stand for nothing."""
    return None if value == _NULL else value


def _verb(name: str) -> str:
    return name.rpartition(".")[2]


def _assigned(activity: Payload) -> Iterable[str]:
    """One change, told in two ways: all ids before and after, or the one who came in."""
    after = fields.at(activity, "new_value")
    if isinstance(after, list):
        return _joined(fields.items(activity, "old_value"), fields.items(activity, "new_value"))
    return (uuid(activity, "new_identifier"),)


def _joined(before: list[object], after: list[object]) -> list[str]:
    known = set(_people(before))
    return [who for who in _people(after) if who not in known]


def _people(entries: Iterable[object]) -> list[str]:
    """Ids, whether they stand alone or inside objects."""
    plain = (each if isinstance(each, str) else fields.text(each, "id") for each in entries)
    return [who for who in plain if _UUID.fullmatch(who)]
