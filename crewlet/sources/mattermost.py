"""Mattermost: outgoing webhooks and slash commands, proved by a token, and websocket frames."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from crewlet.sources import fields, mattermost_posts
from crewlet.sources.content import Unreadable, decode, header
from crewlet.sources.forms import decode_form, is_form
from crewlet.sources.mattermost_posts import Reading
from crewlet.sources.notification import Notification, Parsed, Skip, Verdict
from crewlet.sources.phrases import PARSER_REFUSED
from crewlet.sources.proofs import is_token
from crewlet.sources.tokens import without_tokens

_EVENT: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


class Mattermost:
    """The source named `mattermost`. Stateless: one instance serves every delivery."""

    name: Final = "mattermost"
    contact: Final = "mattermost_user_id"
    kept: Final = ()

    def verify(self, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
        """Whether the body's `token`, or a slash command's Authorization, is the secret.

        Each hook has a token of its own: a secret of several, with commas between them, lets
        in each of these hooks.
        """
        try:
            payload = self.decode(headers, body)
        except Unreadable:
            return False
        authorization = header(headers, "Authorization")
        stated = (fields.text(payload, "token"), authorization.removeprefix("Token ").strip())
        matches = False
        for token in secret.split(b","):  # each with all, so that no time tells which
            for each in stated:
                matches |= is_token(each, token.strip())
        return matches

    def delivery_key(self, headers: Mapping[str, str]) -> str:
        """None of the headers names the post: `payload_key` does."""
        return ""

    def payload_key(self, headers: Mapping[str, str], payload: object) -> str:
        """The post's id, the same in a frame and in a hook: one post wakes a seat once."""
        if fields.text(payload, "event") == mattermost_posts.POSTED:
            post, _ = mattermost_posts.inner(fields.obj(payload, "data"), "post")
            return mattermost_posts.identifier(post, "id")
        return fields.first(
            (
                mattermost_posts.identifier(payload, "post_id"),
                fields.name(payload, "trigger_id"),
            )
        )

    def decode(self, headers: Mapping[str, str], body: bytes) -> Any:
        """The JSON value, or the fields of a form. Raises Unreadable."""
        return decode_form(body) if is_form(headers) else decode(headers, body)

    def published(self, body: bytes) -> bytes:
        """The body without the token that proved it."""
        return without_tokens(body)

    def parse(self, headers: Mapping[str, str], payload: object) -> list[Parsed]:
        """What a decoded body says. A post without ids is read, and skipped."""
        if not isinstance(payload, dict) or not payload:
            return [_refused("", "the payload is not a filled object")]
        event = fields.text(payload, "event")
        if "event" in payload and not _EVENT.fullmatch(event):
            return [_refused("", "the frame does not name its event")]
        if event:
            return _read(event, mattermost_posts.of_frame(payload))
        if not {"channel_id", "user_id", "post_id"} & payload.keys():
            return [_refused("", "this is neither a frame nor an outgoing webhook")]
        command = mattermost_posts.is_command(payload)
        name = mattermost_posts.COMMAND if command else mattermost_posts.OUTGOING
        return _read(name, mattermost_posts.of_hook(payload))


def _read(event: str, reading: Reading) -> list[Parsed]:
    """The reading; a post that has no key is never filed under an empty one."""
    read = _notification(event, reading)
    if reading.fault:
        return [read, _refused(event, reading.fault)]
    keyless = reading.heard and not reading.place.partition
    if keyless and event != mattermost_posts.COMMAND:
        return [read, _refused(event, "the post does not name its channel and id")]
    return [read]


def _notification(event: str, reading: Reading) -> Notification:
    place, facts = reading.place, reading.facts
    partition = f"mattermost:{place.partition}" if place.partition else ""
    where = facts.get("channel_display_name") or facts.get("channel_name") or place.channel
    kind = "direct message" if place.direct else "message"
    happened = event.replace("_", " ")
    said = reading.heard
    message = facts.get("message_id", "")
    return Notification(
        source=Mattermost.name,
        event_type=event,
        verdict=_verdict(event, reading, partition),
        partition_key=partition,
        conversation_identity=f"mattermost:{place.identity}" if partition else "",
        sender=reading.sender,
        addressed=reading.addressed,
        subject=f"{kind if said else happened} in {where}" if where else happened,
        body=_body(reading) or (f"{happened} in {where}" if where else happened),
        occurrence=f"mattermost:{message}" if said and message else "",
        metadata=facts,
    )


def _verdict(event: str, reading: Reading, partition: str) -> Verdict:
    if event == mattermost_posts.COMMAND:
        return "wake"
    if not reading.heard or not partition:
        return "nothing"
    if event == mattermost_posts.OUTGOING or reading.addressed:
        return "wake"
    return "follow"


def _body(reading: Reading) -> str:
    """The text and the files by name; of files without names their number."""
    named = reading.facts.get("files", [])
    count = len(reading.facts.get("file_ids", []))
    lines = [
        f"[file] {file.get('name', 'unnamed')} ({file.get('type', 'unknown type')})"
        for file in named
    ]
    if count and not named:
        lines = [f"[{count} file{'s' if count > 1 else ''}]"]
    return "\n".join(part for part in (reading.text, *lines) if part.strip())


def _refused(event_type: str, detail: str) -> Skip:
    return Skip(source=Mattermost.name, event_type=event_type, reason=PARSER_REFUSED, detail=detail)
