"""Slack's Events API as rules: where something happened, who did it, whom it addresses.

Only what a person says is heard: posts of bots (our own among them) wake nobody, or two agents
would answer each other for ever; joins, topics, deletions and previews say nothing new.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from crewlet.sources import fields
from crewlet.sources.chat import Place, distinct, moment
from crewlet.sources.fields import Payload
from crewlet.sources.slack_text import body, called, calls_everybody, files

SAID: Final = frozenset({"", "file_share", "thread_broadcast", "me_message"})
"""Subtypes of a message in which somebody says something; all others only report."""

MESSAGES: Final = frozenset({"message", "app_mention"})
UNKNOWN: Final = "unknown"

_BOT: Final = "bot_message"
_DIRECT: Final = frozenset({"im", "app_home"})
_GROUP: Final = "mpim"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STAMP: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,12})?")


class Reading(Struct, frozen=True, kw_only=True):
    """One event. `heard` where it is a person's message or edit; `spoken` is that message."""

    place: Place
    sender: str
    addressed: tuple[str, ...] = ()
    heard: bool = False
    spoken: Payload
    facts: Mapping[str, Any]


def read(event: Payload, envelope: Payload) -> Reading:
    """The event inside an event_callback."""
    kind, subtype = fields.text(event, "type"), fields.text(event, "subtype")
    if kind in MESSAGES and subtype == "message_changed":
        return _edited(event)
    if kind in MESSAGES and subtype == "message_deleted":
        return _deleted(event)
    if kind in MESSAGES:
        return _message(event, envelope, subtype)
    return _other(event)


def identifier(payload: object, *path: str) -> str:
    """The id of somebody or something at `path`, '' where it is none."""
    value = fields.text(payload, *path)
    return value if _ID.fullmatch(value) else ""


def stamp(payload: object, *path: str) -> str:
    """A message's time, by which Slack names it."""
    value = fields.text(payload, *path)
    return value if _STAMP.fullmatch(value) else ""


def by_bot(message: Payload) -> bool:
    """Whether a program posted it: an app, a hook, an agent of ours."""
    stated = (fields.at(message, key) for key in ("bot_id", "bot_profile"))
    return fields.text(message, "subtype") == _BOT or any(stated)


def is_direct(event: Payload, channel: str) -> bool:
    """A direct or group message, by its channel's type or, without one, by the id."""
    kind = fields.text(event, "channel_type")
    return kind == _GROUP or _is_private(kind, channel)


def _is_private(kind: str, channel: str) -> bool:
    return kind in _DIRECT or (not kind and channel.startswith("D"))


def _message(event: Payload, envelope: Payload, subtype: str) -> Reading:
    text, sender = fields.text(event, "text"), _sender(event)
    channel = identifier(event, "channel")
    names = list(called(text)) if subtype in SAID or subtype == _BOT else []
    if subtype in SAID and _is_private(fields.text(event, "channel_type"), channel):
        names += _receiver(envelope)
    return Reading(
        place=_place(event, event),
        sender=sender,
        addressed=distinct(names, sender),
        heard=subtype in SAID and not by_bot(event),
        spoken=event,
        facts=_facts(event, event),
    )


def _edited(event: Payload) -> Reading:
    """An edit counts where its text is another one: a preview of a link is an edit, too."""
    after, before = fields.obj(event, "message"), fields.obj(event, "previous_message")
    sender = _sender(after)
    old, new = fields.at(before, "text"), fields.text(after, "text")
    said = fields.text(after, "subtype") in SAID and not by_bot(after)
    heard = said and isinstance(old, str) and old != new and bool(new.strip())
    names = set(called(old)) if isinstance(old, str) else set()
    added = (name for name in called(new) if name not in names) if heard else ()
    return Reading(
        place=_place(event, after),
        sender=sender,
        addressed=distinct(added, sender),
        heard=heard,
        spoken=after,
        facts={**_facts(event, after), "edited": True},
    )


def _deleted(event: Payload) -> Reading:
    gone = fields.obj(event, "previous_message")
    place = _place(event, {**gone, "ts": stamp(event, "deleted_ts") or stamp(gone, "ts")})
    return Reading(place=place, sender=_sender(gone), spoken={}, facts=_facts(event, gone))


def _other(event: Payload) -> Reading:
    """A reaction, an opened thread, a file, a member: it says nothing to anybody."""
    item, opened = fields.obj(event, "item"), fields.obj(event, "assistant_thread")
    channel = fields.first(
        (
            identifier(item, "channel"),
            identifier(opened, "channel_id"),
            identifier(event, "channel"),
            identifier(event, "channel", "id"),
        )
    )
    place = Place(
        channel=channel,
        message=stamp(item, "ts"),
        thread=stamp(opened, "thread_ts"),
        direct=is_direct(event, channel),
    )
    sender = _sender(event)
    if sender == UNKNOWN:
        sender = identifier(opened, "user_id") or UNKNOWN
    return Reading(place=place, sender=sender, spoken={}, facts=_facts(event, item))


def _place(event: Payload, message: Payload) -> Place:
    channel = identifier(event, "channel")
    return Place(
        channel=channel,
        message=stamp(message, "ts"),
        thread=stamp(message, "thread_ts"),
        direct=is_direct(event, channel),
    )


def _sender(message: Payload) -> str:
    return fields.first(
        (
            identifier(message, "user"),
            identifier(message, "user", "id"),
            identifier(message, "bot_id"),
            UNKNOWN,
        )
    )


def _receiver(envelope: Payload) -> list[str]:
    """The account that a direct message is for: Slack names the one that it delivers to."""
    every = fields.items(envelope, "authorizations")
    bots = [entry for entry in every if fields.flag(entry, "is_bot")]
    named = [identifier(entry, "user_id") for entry in (*bots, *every)]
    users = fields.at(envelope, "authed_users")
    if isinstance(users, list) and users and isinstance(users[0], str):
        named.append(users[0] if _ID.fullmatch(users[0]) else "")
    return [found for found in named if found][:1]


def _facts(event: Payload, message: Payload) -> dict[str, Any]:
    """The metadata: what routes filter on and handlers look up."""
    channel, own = identifier(event, "channel"), stamp(message, "ts")
    return fields.stated(
        {
            "event": fields.short(event, "type"),
            "subtype": fields.short(event, "subtype"),
            "channel": channel or identifier(event, "item", "channel"),
            "channel_kind": fields.short(event, "channel_type"),
            "ts": own,
            "thread_ts": stamp(message, "thread_ts"),
            "message_id": f"{channel}:{own}" if channel and own else "",
            "timestamp": moment(own) or moment(stamp(event, "event_ts")),
            "team": identifier(event, "team"),
            "bot": True if by_bot(message) else None,
            "everybody": True if calls_everybody(fields.text(message, "text")) else None,
            "files": files(message),
            "reaction": fields.name(event, "reaction"),
            "item_user": identifier(event, "item_user"),
        }
    )


def said_in(reading: Reading) -> tuple[str, str]:
    """Subject and body of a reading whose type has no words of its own."""
    place = reading.place
    event = str(reading.facts.get("subtype") or reading.facts.get("event", ""))
    happened = event.replace("_", " ")
    otherwise = f"{happened} in {place.channel}" if place.channel else happened
    if not reading.spoken:
        return otherwise, otherwise
    return subject(reading), body(reading.spoken, otherwise)


def subject(reading: Reading) -> str:
    """Where it was said: a chat's conversations have no titles."""
    kind = "direct message" if reading.place.direct else "message"
    return f"{kind} in {reading.place.channel}" if reading.place.channel else kind
