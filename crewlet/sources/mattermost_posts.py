"""Mattermost's posts and frames, read: the place, the sender, whom it addresses.

A post comes either in a frame of the websocket, as JSON inside a text, or in the fields of an
outgoing webhook or a slash command, which say neither the kind of the channel nor the thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from crewlet.sources import fields
from crewlet.sources.chat import Place, distinct, moment, prose
from crewlet.sources.content import Unreadable, decode
from crewlet.sources.fields import Payload

UNKNOWN: Final = "unknown"
POSTED: Final = "posted"
OUTGOING: Final = "outgoing_webhook"
COMMAND: Final = "slash_command"

_DIRECT: Final = frozenset({"D", "G", "im", "mpim"})
_PAIR: Final = frozenset({"D", "im"})
_SAID: Final = frozenset({"", "me", "slack_attachment"})
_BOTS: Final = ("from_bot", "from_webhook", "from_plugin")
_ID: Final = re.compile(r"[a-z0-9]{1,64}")
_NAME: Final = re.compile(r"(?<![A-Za-z0-9_@.-])@([A-Za-z0-9][A-Za-z0-9._-]{0,63})")
_EVERYBODY: Final = frozenset({"channel", "all", "here"})
_LISTED_FILES: Final = 20


class Reading(Struct, frozen=True, kw_only=True):
    """One post, or one happening around it. `heard` where a person says something in it."""

    place: Place
    sender: str
    addressed: tuple[str, ...] = ()
    heard: bool = False
    fault: str = ""
    text: str = ""
    facts: Mapping[str, Any]


def of_frame(frame: Payload) -> Reading:
    """A frame of the websocket: the post that it is about, whatever happened to it."""
    data = fields.obj(frame, "data")
    post, fault = inner(data, "post")
    reaction, _ = inner(data, "reaction")
    channel = _first_id(
        fields.at(post, "channel_id"),
        fields.at(reaction, "channel_id"),
        fields.at(frame, "broadcast", "channel_id"),
    )
    kind = fields.short(data, "channel_type")
    about_post = bool(post or reaction)
    place = Place(
        channel=channel if about_post else "",
        message=_first_id(fields.at(post, "id"), fields.at(reaction, "post_id")),
        thread=identifier(post, "root_id"),
        direct=kind in _DIRECT,
    )
    sender = _first_id(
        fields.at(post, "user_id"), fields.at(reaction, "user_id"), fields.at(data, "user_id")
    )
    heard = fields.text(frame, "event") == POSTED and _is_said(post)
    return Reading(
        place=place,
        sender=sender or UNKNOWN,
        addressed=_addressed(data, post, sender) if heard else (),
        heard=heard,
        fault=fault if fields.text(frame, "event") == POSTED else "",
        text=fields.text(post, "message"),
        facts=_frame_facts(frame, data, post, reaction, place),
    )


def of_hook(payload: Payload) -> Reading:
    """An outgoing webhook or a slash command: whoever set it up is addressed by it, so that a
    route of the company says who that is."""
    sender = identifier(payload, "user_id") or UNKNOWN
    post = identifier(payload, "post_id")
    name = COMMAND if is_command(payload) else OUTGOING
    names = [part for part in fields.short(payload, "file_ids").split(",") if part.strip()]
    channel = identifier(payload, "channel_id")
    text = fields.text(payload, "text")
    command = fields.short(payload, "command")
    facts = {
        "event": name,
        "channel": channel,
        "channel_name": fields.short(payload, "channel_name"),
        "team": fields.short(payload, "team_domain"),
        "sender_name": fields.name(payload, "user_name"),
        "post_id": post,
        "message_id": post,
        "trigger_word": fields.short(payload, "trigger_word"),
        "command": command,
        "timestamp": _time(fields.at(payload, "timestamp")),
        "file_ids": names[:_LISTED_FILES],
    }
    return Reading(
        place=Place(channel=channel, message=post),
        sender=sender,
        heard=True,
        text=f"{command} {text}".strip() if command else text,
        facts=fields.stated(facts),
    )


def is_command(payload: Payload) -> bool:
    return fields.text(payload, "command").startswith("/")


def inner(data: Payload, key: str) -> tuple[Payload, str]:
    """The object that stands as JSON in a text, and what is wrong with it."""
    written = fields.at(data, key)
    if isinstance(written, dict):
        return written, ""
    if not isinstance(written, str):
        return {}, f"the frame has no {key}"
    try:
        value = decode({}, written.encode("utf-8", "replace"))
    except Unreadable:
        return {}, f"the {key} inside the frame is not readable JSON"
    return (value, "") if isinstance(value, dict) else ({}, f"the {key} inside is no object")


def identifier(payload: object, key: str) -> str:
    """The id under `key`, '' where it is none."""
    return _first_id(fields.at(payload, key))


def _first_id(*values: object) -> str:
    return next((value for value in values if isinstance(value, str) and _ID.fullmatch(value)), "")


def _is_said(post: Payload) -> bool:
    """Whether a person says something: no joins and headers, no deleted post, no bot (ours
    among them: two agents would answer each other for ever)."""
    said = fields.text(post, "type") in _SAID and not fields.at(post, "delete_at")
    return said and not _by_bot(post) and bool(post)


def _by_bot(post: Payload) -> bool:
    return any(fields.at(post, "props", key) in (True, "true") for key in _BOTS)


def _addressed(data: Payload, post: Payload, sender: str) -> tuple[str, ...]:
    """Those whom the server says it notifies, else the names in the text; in a direct channel
    the other side."""
    names = _listed(data)
    if names is None:
        names = [f"@{name}" for name in _called(fields.text(post, "message"))]
    if fields.text(data, "channel_type") in _PAIR:
        names += _pair(fields.text(data, "channel_name"))
    own = fields.name(data, "sender_name")
    return distinct(names, sender, own, f"@{own}")


def _listed(data: Payload) -> list[str] | None:
    """`mentions`, a list of user ids in a text; None where the server sends none."""
    written = fields.at(data, "mentions")
    if not isinstance(written, str):
        return None
    try:
        value = decode({}, written.encode("utf-8", "replace"))
    except Unreadable:
        return None
    every = value[: fields.MAX_ITEMS] if isinstance(value, list) else []
    return [entry for entry in every if isinstance(entry, str) and _ID.fullmatch(entry)]


def _called(text: str) -> Iterable[str]:
    for match in _NAME.finditer(prose(text)):
        if (name := match[1].rstrip("._-")) and name.casefold() not in _EVERYBODY:
            yield name


def _pair(channel_name: str) -> list[str]:
    """Both ids in the name of a direct channel, `A__B`."""
    sides = channel_name.split("__")
    return sides if len(sides) == 2 and all(map(_ID.fullmatch, sides)) else []


def _frame_facts(
    frame: Payload, data: Payload, post: Payload, reaction: Payload, place: Place
) -> dict[str, Any]:
    text = fields.text(post, "message")
    everybody = {match[1].casefold() for match in _NAME.finditer(prose(text))} & _EVERYBODY
    return fields.stated(
        {
            "event": fields.short(frame, "event"),
            "channel": place.channel,
            "channel_kind": fields.short(data, "channel_type"),
            "channel_name": fields.short(data, "channel_name"),
            "channel_display_name": fields.short(data, "channel_display_name"),
            "team": identifier(data, "team_id"),
            "sender_name": fields.name(data, "sender_name"),
            "post_id": place.message,
            "root_id": place.thread,
            "message_id": place.message,
            "post_type": fields.short(post, "type"),
            "timestamp": _time(fields.at(post, "create_at")),
            "bot": True if _by_bot(post) else None,
            "everybody": True if everybody else None,
            "file_ids": [name for name in fields.items(post, "file_ids") if isinstance(name, str)][
                :_LISTED_FILES
            ],
            "files": _files(post),
            "reaction": fields.name(reaction, "emoji_name"),
        }
    )


def _files(post: Payload) -> list[dict[str, Any]]:
    found = (
        fields.stated(
            {"name": fields.short(entry, "name"), "type": fields.short(entry, "mime_type")}
        )
        for entry in fields.items(post, "metadata", "files")[:_LISTED_FILES]
    )
    return [file for file in found if file]


def _time(value: object) -> str:
    """RFC 3339 of milliseconds, or of the seconds that older servers send."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 10**14:
        return ""
    return moment(f"{value / 1000 if value >= 10**11 else value:.3f}")
