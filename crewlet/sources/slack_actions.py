"""Slack's forms: slash commands, and what people press, choose and submit."""

from __future__ import annotations

from typing import Any, Final

from crewlet.sources import fields
from crewlet.sources.chat import Place, distinct, moment
from crewlet.sources.fields import Payload
from crewlet.sources.slack_events import UNKNOWN, Reading, identifier, is_direct, stamp
from crewlet.sources.slack_text import called, plain

SLASH_COMMAND: Final = "slash_command"
SSL_CHECK: Final = "ssl_check"


def form_type(payload: Payload) -> str:
    """The type of a form that carries no JSON, '' where it is neither of the two."""
    if fields.text(payload, "command").startswith("/"):
        return SLASH_COMMAND
    return SSL_CHECK if fields.text(payload, "ssl_check") else ""


def command(payload: Payload) -> Reading:
    """A slash command: it has no message of its own, so that only a direct one has a
    conversation."""
    channel = identifier(payload, "channel_id")
    sender = identifier(payload, "user_id") or UNKNOWN
    facts = {
        "event": SLASH_COMMAND,
        "command": fields.short(payload, "command"),
        "channel": channel,
        "channel_name": fields.short(payload, "channel_name"),
        "sender_name": fields.name(payload, "user_name"),
        "team": identifier(payload, "team_id"),
    }
    return Reading(
        place=Place(channel=channel, direct=_direct(channel, payload, "channel_name")),
        sender=sender,
        addressed=distinct(called(fields.text(payload, "text")), sender),
        spoken=payload,
        facts=fields.stated(facts),
    )


def _direct(channel: str, payload: Payload, *name: str) -> bool:
    """Forms do not say the kind of a channel; a group message's name gives it away."""
    return is_direct({}, channel) or fields.text(payload, *name).startswith("mpdm-")


def command_text(payload: Payload) -> str:
    """The command as it was typed."""
    words = (fields.text(payload, "command"), plain(fields.text(payload, "text")))
    return " ".join(word for word in words if word.strip())


def action(payload: Payload) -> Reading:
    """A button, a menu, a shortcut, a form that was sent: it belongs to the message below it."""
    channel = fields.first(
        (identifier(payload, "channel", "id"), identifier(payload, "container", "channel_id"))
    )
    message = fields.obj(payload, "message")
    own = stamp(message, "ts") or stamp(payload, "container", "message_ts")
    place = Place(
        channel=channel,
        message=own,
        thread=stamp(message, "thread_ts") or stamp(payload, "container", "thread_ts"),
        direct=_direct(channel, payload, "channel", "name"),
    )
    facts = {
        "event": fields.short(payload, "type"),
        "channel": channel,
        "channel_name": fields.short(payload, "channel", "name"),
        "ts": own,
        "thread_ts": place.thread,
        "timestamp": moment(stamp(payload, "action_ts")),
        "sender_name": fields.name(payload, "user", "username")
        or fields.name(payload, "user", "name"),
        "team": identifier(payload, "team", "id"),
        "callback": fields.first(
            (
                fields.short(payload, "callback_id"),
                fields.short(payload, "view", "callback_id"),
            )
        ),
        "actions": [entry for entry in map(_pressed, fields.items(payload, "actions")) if entry],
    }
    return Reading(
        place=place,
        sender=identifier(payload, "user", "id") or UNKNOWN,
        heard=True,
        spoken=payload,
        facts=fields.stated(facts),
    )


def action_text(payload: Payload) -> str:
    """What was done in one line, and with which values."""
    kind = fields.short(payload, "type").replace("_", " ")
    pressed = [entry for entry in map(_pressed, fields.items(payload, "actions")) if entry]
    told = (": ".join(entry.values()) for entry in pressed)
    return "\n".join([kind, *(f"- {line}" for line in told)])


def _pressed(entry: object) -> dict[str, Any]:
    """One action: its own name, and the value that was chosen."""
    name = fields.short(entry, "action_id") or fields.short(entry, "name")
    value = fields.first(
        (
            fields.short(entry, "value"),
            fields.short(entry, "selected_option", "value"),
            fields.short(entry, "selected_user"),
            fields.short(entry, "selected_channel"),
            fields.short(entry, "selected_date"),
        )
    )
    return fields.stated({"action": name, "value": value}) if name else {}
