"""Confluence's events: which page one belongs to, and whom it addresses.

Three kinds of sender, three shapes: a server names the event in the body (`event`) and sends
ids only; Connect apps of the cloud name it in the URL alone; Forge sends `eventType` and puts
the object under `content`. Names are brought to one form, `page_created`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from crewlet.sources import fields
from crewlet.sources.content import header
from crewlet.sources.edge_facts import PATH_EVENT
from crewlet.sources.fields import Payload

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FORGE: Final = re.compile(r"avi:confluence:([a-z_]{1,40}):([a-z_]{1,40})")
_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_PAGES: Final = frozenset({"page", "blogpost", "blog"})
_DEPTH: Final = 5
"""How many comments a comment may hang under on the way to its page."""

_LIFE: Final = frozenset({"created", "updated", "moved", "restored", "archived", "unarchived"})
FOLLOWED: Final[Mapping[str, frozenset[str]]] = {
    "page": _LIFE | {"published", "copied"},
    "blog": _LIFE | {"published"},
    "comment": frozenset({"created", "updated"}),
    "task": frozenset({"created", "updated"}),
}
"""What those already in the conversation want to hear. Deletions, likes and views they do not."""


def event(headers: Mapping[str, str], payload: Payload) -> str:
    """The event as `page_created`: of the body, else of the header, else of the URL."""
    stated = vendors_name(headers, payload)
    forge = _FORGE.fullmatch(stated)
    if forge is None:
        return stated
    noun = "blog" if forge[2] == "blogpost" else forge[2]
    return f"{noun}_{forge[1]}"


def vendors_name(headers: Mapping[str, str], payload: Payload) -> str:
    """The event as it is called where it comes from, '' where nothing names one."""
    stated = (
        fields.text(payload, "eventType"),
        fields.text(payload, "event"),
        header(headers, "X-Event-Key"),
        header(headers, PATH_EVENT),
    )
    return fields.first(each for each in stated if _NAME.fullmatch(each) or _FORGE.fullmatch(each))


def noun(name: str) -> str:
    """What an event is about: `comment` of `comment_created`."""
    return name.rpartition("_")[0]


def page(payload: Payload) -> Payload:
    """The page or blog post of the conversation, {} where the payload does not name it."""
    for key in ("page", "blog", "blogpost", "attachedTo"):
        if found := fields.obj(payload, key):
            return found
    for key in ("comment", "content"):
        if found := fields.obj(payload, key):
            return _page_of(found)
    return payload if fields.text(payload, "type") in _PAGES else {}


def identity(payload: Payload) -> str:
    """The id of the page, '' where the payload names none. Never the id of a comment."""
    return identifier(page(payload))


def identifier(thing: Payload) -> str:
    """An id as text: the cloud has outgrown the numbers that JSON keeps exactly."""
    for key in ("idAsString", "id"):
        stated = fields.text(thing, key)
        if _ID.fullmatch(stated):
            return stated
    count = fields.number(thing, "id")
    return str(count) if count else ""


def comment(payload: Payload) -> Payload:
    """The comment of the payload, {} without one."""
    content = fields.obj(payload, "content")
    is_comment = fields.text(content, "type") == "comment"
    return content if is_comment else fields.obj(payload, "comment")


def sender(payload: Payload) -> tuple[str, ...]:
    """Whoever did it: an account id of the cloud, or a server's opaque user key."""
    stated = (fields.name(payload, key) for key in ("atlassianId", "userAccountId", "userKey"))
    found = fields.first((*stated, fields.name(payload, "history", "createdBy", "accountId")))
    return (found,) if found else ()


def followed(name: str, payload: Payload) -> bool:
    """Whether followers are told: not where the editor chose to notify nobody."""
    if fields.flag(payload, "suppressNotifications"):
        return False
    return name.rpartition("_")[2] in FOLLOWED.get(noun(name), ())


def addressed(name: str, payload: Payload) -> Iterator[str]:
    """Whom this happening addresses. No delivery has the text, and so no mentions."""
    if noun(name) == "task" and name in ("task_created", "task_updated"):
        yield fields.name(payload, "task", "assignee")


def _page_of(thing: Payload) -> Payload:
    """From a comment up to its page, by whichever name the sender has for what is above."""
    for _ in range(_DEPTH):
        kind = fields.text(thing, "contentType") or fields.text(thing, "type")
        if kind in _PAGES:
            return thing
        thing = fields.obj(thing, "container") or fields.obj(thing, "parent")
    return {}
