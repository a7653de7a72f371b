"""Slack: the Events API, slash commands and interactivity; signed with the time of sending."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import fields, slack_actions, slack_events
from crewlet.sources.content import decode, header
from crewlet.sources.edge_facts import RECEIVED
from crewlet.sources.fields import Payload
from crewlet.sources.forms import decode_form, is_form
from crewlet.sources.notification import Notification, Parsed, Skip, Verdict
from crewlet.sources.phrases import PARSER_REFUSED
from crewlet.sources.proofs import signed
from crewlet.sources.reply import Reply
from crewlet.sources.slack_events import Reading
from crewlet.sources.tokens import without_tokens

WINDOW_S: Final = 300
"""How old a delivery may be: Slack's own recommendation against replays."""

SKEW_S: Final = 5
"""How far in the future it may be: what two clocks kept by NTP may differ."""

_SENT: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?", re.ASCII)
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CALLBACK: Final = "event_callback"
_CHALLENGE: Final = "url_verification"
_LIMITED: Final = "app_rate_limited"


class Slack:
    """The source named `slack`. Stateless: one instance serves every delivery."""

    name: Final = "slack"
    contact: Final = "slack_user_id"
    kept: Final = ("x-slack-retry-num", "x-slack-retry-reason")

    def verify(self, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
        """Whether `v0:TIME:BODY` is signed, and TIME at most five minutes before the edge's own
        time in `:received`. Without that time nothing is verified."""
        sent = header(headers, "X-Slack-Request-Timestamp")
        content = b"v0:" + sent.encode("utf-8", "replace") + b":" + body
        stated = header(headers, "X-Slack-Signature")
        return signed(stated, content, secret, prefix="v0=") and _fresh(headers, sent)

    def delivery_key(self, headers: Mapping[str, str]) -> str:
        """None of the headers names the event: `payload_key` does."""
        return ""

    def payload_key(self, headers: Mapping[str, str], payload: object) -> str:
        """The event's id, the same in every retry; of a form the id of what was triggered."""
        return fields.name(payload, "event_id") or fields.name(payload, "trigger_id")

    def decode(self, headers: Mapping[str, str], body: bytes) -> Any:
        """The JSON value; of a form the JSON in `payload`, else its fields. Raises Unreadable."""
        if not is_form(headers):
            return decode(headers, body)
        form = decode_form(body)
        return decode(headers, body) if "payload" in form else form

    def reply(self, payload: object) -> Reply | None:
        """The challenge back, or an empty 200: Slack shows people whatever else a command gets."""
        if not isinstance(payload, dict):
            return None
        challenge = fields.text(payload, "challenge")
        if payload.get("type") == _CHALLENGE and challenge:
            return Reply({"challenge": challenge}, publish=False)
        if payload.get("type") in (_CALLBACK, _CHALLENGE, _LIMITED):
            return None
        return Reply()

    def published(self, body: bytes) -> bytes:
        """The body without the verification token that Slack still sends along."""
        return without_tokens(body)

    def parse(self, headers: Mapping[str, str], payload: object) -> list[Parsed]:
        """What a decoded body says. A message without a place is read, and skipped."""
        if not isinstance(payload, dict) or not payload:
            return [_refused("", "the payload is not a filled object")]
        kind = fields.text(payload, "type") or slack_actions.form_type(payload)
        event = fields.obj(payload, "event")
        named = (fields.text(event, "type"), fields.text(event, "subtype")) if event else (kind, "")
        if kind == _CALLBACK and not event:
            return [_refused(kind, "the event_callback has no event")]
        if not _NAME.fullmatch(kind) or not _NAME.fullmatch(named[0]):
            return [_refused("", "the payload does not name its type")]
        event_type = ".".join(part for part in named if _NAME.fullmatch(part))
        if kind == _CALLBACK:
            return _event(event_type, slack_events.read(event, payload), payload)
        return [_form(kind, payload)]


def _event(event_type: str, reading: Reading, payload: Payload) -> list[Parsed]:
    subject, body = slack_events.said_in(reading)
    read = _notification(event_type, reading, subject, body)
    if reading.heard and not reading.place.partition:
        return [read, _refused(event_type, "the message does not name its channel and time")]
    return [read]


def _form(kind: str, payload: Payload) -> Notification:
    """Whatever is no event: a form, or a word of Slack's own about the connection."""
    if kind == slack_actions.SLASH_COMMAND:
        text = slack_actions.command_text(payload)
        return _notification(kind, slack_actions.command(payload), text[: fields.MAX_TEXT], text)
    if kind in (_CHALLENGE, _LIMITED, slack_actions.SSL_CHECK):
        return Notification(
            source=Slack.name,
            event_type=kind,
            verdict="nothing",
            sender=slack_events.UNKNOWN,
            subject=kind.replace("_", " "),
            body=kind.replace("_", " "),
            metadata={"event": kind},
        )
    text = slack_actions.action_text(payload)
    reading = slack_actions.action(payload)
    return _notification(kind, reading, slack_events.subject(reading), text)


def _notification(event_type: str, reading: Reading, subject: str, body: str) -> Notification:
    place = reading.place
    partition = f"slack:{place.partition}" if place.partition else ""
    message = reading.facts.get("message_id", "")
    once = reading.heard and message and "edited" not in reading.facts
    return Notification(
        source=Slack.name,
        event_type=event_type,
        verdict=_verdict(reading, event_type, partition),
        partition_key=partition,
        conversation_identity=f"slack:{place.identity}" if partition else "",
        sender=reading.sender,
        addressed=reading.addressed,
        subject=subject,
        body=body,
        occurrence=f"slack:{message}" if once else "",
        metadata=reading.facts,
    )


def _verdict(reading: Reading, event_type: str, partition: str) -> Verdict:
    if event_type == slack_actions.SLASH_COMMAND:
        return "wake" if reading.addressed else "nothing"
    if not reading.heard or not partition:
        return "nothing"
    return "wake" if reading.addressed else "follow"


def _fresh(headers: Mapping[str, str], sent: str) -> bool:
    received = header(headers, RECEIVED)
    if not _SENT.fullmatch(sent) or not _SECONDS.fullmatch(received):
        return False
    return -SKEW_S <= float(received) - int(sent) <= WINDOW_S


def _refused(event_type: str, detail: str) -> Skip:
    return Skip(source=Slack.name, event_type=event_type, reason=PARSER_REFUSED, detail=detail)
