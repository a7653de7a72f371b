"""Which work item a turn is charged to, and by which rule: a function of what woke it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from crewlet.events import catalogue as types
from crewlet.events.work_items import Basis, WorkItem
from crewlet.inbound.constituent import Constituent

_NUMBERED: Final[Mapping[str, re.Pattern[str]]] = {
    "jira": re.compile(r"(?P<project>[^\s-]+)-\d+"),
    "github": re.compile(r"(?P<project>[^\s#@]+)#\d+"),
    "gitlab": re.compile(r"(?P<project>[^\s#!&$@]+)[#!&]\d+"),
}
"""How a backend names its items in a conversation's identity. A commit, a snippet, a page, a chat
is somewhere to talk, and nothing that is worked off."""

_TALK: Final = frozenset({"discussion", "discussion_comment"})

_CARRIED: Final[Mapping[str, Basis]] = {
    types.RUN_COMPLETED: "resume",
    types.RUN_FAILED: "resume",
    types.A2A_REQUEST: "asked_by",
    types.A2A_MESSAGE: "asked_by",
}
"""Events of the engine's own that bring along what the turn behind them was charged to."""


class Charge(Struct, frozen=True):
    """Nothing names an item: None, and no rule."""

    work_item: WorkItem | None = None
    basis: Basis | None = None


NOTHING: Final = Charge()


def charge_of(constituents: Sequence[Constituent]) -> Charge:
    """By the run that the turn goes on from, else by the latest event that names an item: those of
    one partition are of one conversation, and a resumed turn is the one that it was."""
    latest_first = reversed(constituents)
    for one in sorted(latest_first, key=lambda one: _CARRIED.get(one.type) != "resume"):
        basis = _CARRIED.get(one.type, "trigger")
        item = _read(one.metadata) if one.type in _CARRIED else _of_notification(one)
        if item is not None:
            return Charge(item, basis)
    return NOTHING


def _read(metadata: Mapping[str, Any]) -> WorkItem | None:
    try:
        return msgspec.convert(metadata.get("work_item"), WorkItem | None)
    except msgspec.ValidationError:
        return None


def _of_notification(one: Constituent) -> WorkItem | None:
    """By its conversation. Of Plane's ids the metadata tells an item's from a page's, and of
    GitHub's numbers a discussion's from the others: it is talk."""
    if one.type != types.EXTERNAL_NOTIFICATION or _text(one.metadata, "event") in _TALK:
        return None
    source, _, local = _text(one.metadata, "conversation_identity").partition(":")
    if source == "plane" and local and local == _text(one.metadata, "work_item"):
        return WorkItem(backend=source, id=local, project=_text(one.metadata, "project"))
    pattern = _NUMBERED.get(source)
    match = pattern.fullmatch(local) if pattern else None
    return (
        WorkItem(backend=source, id=local, key=local, project=match["project"]) if match else None
    )


def _text(metadata: Mapping[str, Any], key: str) -> str:
    found = metadata.get(key)
    return found if isinstance(found, str) else ""
