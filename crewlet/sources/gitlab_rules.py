"""GitLab's events as tables: which conversation one belongs to, and whom it addresses.

The body says what happened; the header only through which hook it came (a system hook sends
merge requests and pushes, too). Numbers are `iid`, as people see them; `id` counts the whole
installation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from crewlet.sources import fields
from crewlet.sources.fields import Payload
from crewlet.sources.mentions import added, mentions

_SEGMENT: Final = r"[A-Za-z0-9_.-]{1,255}"
_PROJECT: Final = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT}){{1,20}}", re.ASCII)
_GROUP: Final = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT}){{0,20}}", re.ASCII)
_GROUP_URL: Final = re.compile(rf"/groups/({_SEGMENT}(?:/{_SEGMENT}){{0,20}}?)/-/", re.ASCII)
_SHA: Final = re.compile(r"[0-9a-fA-F]{7,64}")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MENTION: Final = re.compile(
    r"""
    (?<![A-Za-z0-9_@])@
    (?P<path>[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_]))*+
      (?:/[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_]))*+)*+)
    (?!@)
    """,
    re.VERBOSE | re.ASCII,
)
_MAX_PATH: Final = 255
_EVERYBODY: Final = "all"

_IN_URL: Final[Mapping[str, re.Pattern[str]]] = {
    "#": re.compile(r"/(?:issues|work_items)/(\d{1,15})(?![\w-])"),
    "!": re.compile(r"/merge_requests/(\d{1,15})(?![\w-])"),
    "&": re.compile(r"/(?:epics|work_items)/(\d{1,15})(?![\w-])"),
}
ITEMS: Final[Mapping[str, str]] = {"issue": "#", "work_item": "#", "merge_request": "!"}
"""Kinds that are a conversation, and the sign before their number."""

_NOTEABLES: Final[Mapping[str, str]] = {
    "merge_request": "!",
    "issue": "#",
    "work_item": "#",
    "epic": "&",
}
_SPOKEN_ABOUT: Final = (*_NOTEABLES, "snippet", "commit")

FOLLOWED: Final[Mapping[str, frozenset[str]]] = {
    "issue": frozenset({"", "open", "update", "close", "reopen"}),
    "work_item": frozenset({"", "open", "update", "close", "reopen"}),
    "merge_request": frozenset({"", "open", "update", "close", "reopen", "merge"})
    | {"approved", "approval", "unapproved", "unapproval"},
    "note": frozenset({"", "create", "update"}),
    "wiki_page": frozenset({"create", "update"}),
    "pipeline": frozenset({""}),
}
"""What those already in the conversation want to hear; '' where GitLab states no action."""

_ENDED: Final = frozenset({"success", "failed", "canceled", "skipped"})
_APPROVED: Final = frozenset({"approved", "approval"})


def kind(payload: Payload) -> str:
    """`object_kind`, else `event_name`: group and system hooks have only this one."""
    found = fields.text(payload, "object_kind") or fields.text(payload, "event_name")
    return found if _NAME.fullmatch(found) else ""


def action(payload: Payload) -> str:
    """What was done to the object, '' where the payload does not say."""
    found = fields.text(payload, "object_attributes", "action")
    return found if _NAME.fullmatch(found) else ""


def project(payload: Payload) -> str:
    """`GROUP/PROJECT` with all the groups between, '' where the payload names none."""
    path = fields.text(payload, "project", "path_with_namespace")
    return path if _PROJECT.fullmatch(path) else ""


def about(payload: Payload) -> tuple[str, Payload]:
    """The object that the conversation is about, and its kind; ('', {}) without one."""
    what = kind(payload)
    if what in ITEMS:
        return what, fields.obj(payload, "object_attributes")
    if what == "pipeline":
        return "merge_request", fields.obj(payload, "merge_request")
    if what in ("note", "emoji"):
        found = (name for name in _SPOKEN_ABOUT if fields.obj(payload, name))
        if name := next(found, ""):
            return name, fields.obj(payload, name)
    return "", {}


def number(payload: Payload) -> int | None:
    """The number that people see, by the object's address where the object keeps it back."""
    name, thing = about(payload)
    sign = ITEMS.get(name) or _NOTEABLES.get(name, "")
    found = fields.number(thing, "iid")
    if found is None and sign:
        match = _IN_URL[sign].search(fields.short(thing, "url"))
        found = int(match[1]) or None if match else None
    return found


def identity(payload: Payload) -> str:
    """The conversation that a payload names, '' where it names none."""
    base = project(payload)
    name, thing = about(payload)
    if kind(payload) == "wiki_page":
        slug = fields.name(payload, "object_attributes", "slug")
        return f"{base}/wiki/{slug}" if base and slug else ""
    if name == "snippet":
        snippet = fields.number(thing, "id")
        return f"{base}${snippet}" if base and snippet else ""
    if name == "commit":
        sha = fields.text(thing, "id") or fields.text(payload, "object_attributes", "commit_id")
        return f"{base}@{sha}" if base and _SHA.fullmatch(sha) else ""
    count = number(payload)
    if name == "epic" or (name == "work_item" and not base):
        epics = group(payload)
        return f"{epics}&{count}" if epics and count else ""
    sign = ITEMS.get(name, "")
    return f"{base}{sign}{count}" if base and sign and count else ""


def group(payload: Payload) -> str:
    """The group of something that belongs to no project: an epic, or a work item like one."""
    where = fields.obj(payload, "group")
    paths = (fields.text(where, key) for key in ("full_path", "path_with_namespace", "group_path"))
    path = fields.first(paths)
    if not path:
        match = _GROUP_URL.search(fields.short(about(payload)[1], "url"))
        path = match[1] if match else ""
    return path if _GROUP.fullmatch(path) else ""


def sender(payload: Payload) -> tuple[str, ...]:
    """Whoever did it. In events about members `user_*` is the member, and nobody says who did."""
    found = fields.name(payload, "user", "username") or fields.name(payload, "user", "name")
    if not found and kind(payload) in ("push", "tag_push"):
        found = fields.name(payload, "user_username") or fields.name(payload, "user_name")
    return (found,) if found else ()


def followed(payload: Payload) -> bool:
    """Whether this belongs to a conversation in a way that its followers are told."""
    what = kind(payload)
    if action(payload) not in FOLLOWED.get(what, ()):
        return False
    if what == "pipeline":
        return fields.text(payload, "object_attributes", "status") in _ENDED
    return not (what == "note" and fields.flag(payload, "object_attributes", "system"))


def opened(payload: Payload) -> bool:
    """Whether the object is new. Without an action: open, and not touched since."""
    done, thing = action(payload), fields.obj(payload, "object_attributes")
    if done:
        return done in ("open", "create")
    made, changed = fields.text(thing, "created_at"), fields.text(thing, "updated_at")
    state = fields.text(thing, "state")
    return bool(made) and made == changed and state in ("", "opened")


def addressed(payload: Payload) -> Iterator[str]:
    """Whom this happening addresses, the sender included, in reading order."""
    what, done = kind(payload), action(payload)
    if what == "note" and opened(payload) and followed(payload):
        yield from mentions(fields.text(payload, "object_attributes", "note"), names)
    elif what in ITEMS and opened(payload):
        yield from fields.names(payload, ["assignees"], "username")
        yield fields.name(payload, "assignee", "username")
        yield from fields.names(payload, ["reviewers"], "username")
        yield from mentions(fields.text(payload, "object_attributes", "description"), names)
    elif what in ITEMS and done == "update":
        yield from _joined(payload, "assignees")
        yield from _joined(payload, "reviewers")
        yield from _newly_called(payload)
    elif what == "merge_request" and done in _APPROVED:
        yield from _author(payload)


def names(text: str) -> Iterator[str]:
    """The calls by name in a text: `@user.name`, `@group/subgroup` as a team. Nobody is `all`."""
    for match in _MENTION.finditer(text):
        path = match["path"]
        if len(path) <= _MAX_PATH and path.casefold() != _EVERYBODY:
            yield f"team:{path}" if "/" in path else path


def _joined(payload: Payload, who: str) -> Iterable[str]:
    """Those whom a change brought in, and reviewers who are asked once more."""
    before = fields.items(payload, "changes", who, "previous")
    known = {fields.name(each, "username"): fields.flag(each, "re_requested") for each in before}
    for each in fields.items(payload, "changes", who, "current"):
        username = fields.name(each, "username")
        again = fields.flag(each, "re_requested") and not known.get(username)
        if username not in known or again:
            yield username


def _newly_called(payload: Payload) -> tuple[str, ...]:
    """An edit calls those whom the text before it did not; without that text, nobody."""
    change = fields.obj(payload, "changes", "description")
    if "previous" not in change:
        return ()
    return added(fields.text(change, "previous"), fields.text(change, "current"), names)


def _author(payload: Payload) -> Iterator[str]:
    """The author is only a number in the payload: a name where somebody in it has that number."""
    wanted = fields.number(payload, "object_attributes", "author_id")
    people = [fields.at(payload, "user"), *fields.items(payload, "assignees")]
    for person in [*people, *fields.items(payload, "reviewers")]:
        if wanted and fields.number(person, "id") == wanted:
            yield fields.name(person, "username")
