"""A vendor's facts become a notification: what holds whatever the vendor.

The sender is never among the addressed, by whichever of its names; somebody addressed is a wake;
a follow needs a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from crewlet.sources.notification import Notification, Skip, Verdict
from crewlet.sources.phrases import PARSER_REFUSED

UNKNOWN: Final = "unknown"
"""The sender of a payload that names none (a deleted account, a merge queue's push)."""

_KIND_OF: Final[Mapping[type, str]] = {
    list: "an array",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


class Reading(Struct, frozen=True, kw_only=True):
    """What one vendor's rules make of a payload.

    `identity` is the conversation's local part, '' where the payload names none. `sender` holds
    every name of whoever did it, the one to show first. `called` are those addressed, the sender
    included. `told`: followers hear of it. `lookup`: it belongs to a conversation that the
    payload does not name. `superseded`: a later event of the conversation makes the body stale.
    `occurrence` is the local part of the notification's.
    """

    event_type: str
    identity: str = ""
    sender: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    told: bool = False
    lookup: bool = False
    superseded: bool = False
    occurrence: str = ""
    subject: str = ""
    body: str = ""
    happening: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def compose(source: str, read: Reading) -> Notification:
    """The notification of a reading."""
    own = {name.casefold() for name in read.sender}
    others = tuple(name for name in each_once(read.called) if name.casefold() not in own)
    key = f"{source}:{read.identity}" if read.identity else ""
    return Notification(
        source=source,
        event_type=read.event_type,
        verdict=_verdict(read, others, key),
        partition_key=key,
        conversation_identity=key,
        sender=next(iter(read.sender), UNKNOWN),
        addressed=others,
        subject=read.subject,
        body=read.body or read.happening,
        lead=read.happening if read.superseded else "",
        occurrence=f"{source}:{read.occurrence}" if read.occurrence else "",
        metadata=read.metadata,
    )


def each_once(names: Iterable[str]) -> tuple[str, ...]:
    """The names in their order; `A` and `a` are one."""
    found: dict[str, str] = {}
    for name in names:
        if name:
            found.setdefault(name.casefold(), name)
    return tuple(found.values())


def kind_of(payload: object) -> str:
    """What a payload that is no filled object is, in words."""
    return "an empty object" if payload == {} else _KIND_OF.get(type(payload), "something else")


def refused(source: str, event_type: str, detail: str) -> Skip:
    """A payload that is readable and yet no delivery."""
    return Skip(source=source, event_type=event_type, reason=PARSER_REFUSED, detail=detail)


def _verdict(read: Reading, others: tuple[str, ...], key: str) -> Verdict:
    if read.lookup and not key:
        return "lookup"
    if others:
        return "wake"
    return "follow" if key and read.told else "nothing"
