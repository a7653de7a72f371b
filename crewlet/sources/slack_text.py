"""Slack's markup, read: whom a text calls, and the text as a person sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from crewlet.sources import fields
from crewlet.sources.chat import prose
from crewlet.sources.fields import Payload

_ANGLE: Final = re.compile(r"<([^<>|]{1,2000})(?:\|([^<>]{0,2000}))?>")
_USER: Final = re.compile(r"@([A-Z0-9_]{1,32})")
_TEAM: Final = re.compile(r"!subteam\^([A-Z0-9_]{1,32})")
_EVERYBODY: Final = frozenset({"!here", "!channel", "!everyone"})
_ESCAPES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))

MAX_FILES: Final = 20


def called(text: str) -> Iterator[str]:
    """Member ids, and groups as `subteam:ID`, in their order; not those that stand in code."""
    for match in _ANGLE.finditer(prose(text)):
        if user := _USER.fullmatch(match[1]):
            yield user[1]
        elif team := _TEAM.fullmatch(match[1]):
            yield f"subteam:{team[1]}"


def calls_everybody(text: str) -> bool:
    """Whether the text has `@here`, `@channel` or `@everyone` outside code."""
    return any(match[1] in _EVERYBODY for match in _ANGLE.finditer(prose(text)))


def plain(text: str) -> str:
    """Links, channels and groups by their labels, escapes undone. Members stay `<@U...>`: an
    answer names them in the same way."""
    shown = _ANGLE.sub(_labelled, text)
    for escape, character in _ESCAPES:
        shown = shown.replace(escape, character)
    return shown


def _labelled(match: re.Match[str]) -> str:
    target, label = match[1], match[2] or ""
    if user := _USER.fullmatch(target):
        return f"<@{user[1]}>"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or "@" + target[1:].partition("^")[0]
    return f"{label} ({target})" if label and not target.endswith(label) else label or target


def body(message: Payload, otherwise: str) -> str:
    """All that a message says, its files by name, type and link; never empty."""
    said = plain(fields.text(message, "text"))
    if not said.strip():
        said = "\n".join(_attached(message))
    parts = [part for part in (said, *_file_lines(message)) if part.strip()]
    return "\n".join(parts) or otherwise


def _attached(message: Payload) -> Iterator[str]:
    for entry in fields.items(message, "attachments"):
        text = fields.text(entry, "text") or fields.text(entry, "fallback")
        if text:
            yield plain(text)


def _file_lines(message: Payload) -> Iterator[str]:
    every = files(message)
    for file in every:
        link = f" {file['url']}" if "url" in file else ""
        yield f"[file] {file.get('name', 'unnamed')} ({file.get('type', 'unknown type')}){link}"
    total = fields.at(message, "files")
    if isinstance(total, list) and len(total) > len(every):
        yield f"[file] and {len(total) - len(every)} more"


def files(message: Payload) -> list[dict[str, Any]]:
    """The files of a message: name, type and link, each where Slack says so."""
    return [
        fields.stated(
            {
                "name": fields.short(entry, "name") or fields.short(entry, "title"),
                "type": fields.short(entry, "mimetype") or fields.short(entry, "filetype"),
                "url": fields.short(entry, "permalink") or fields.short(entry, "url_private"),
            }
        )
        for entry in fields.items(message, "files")[:MAX_FILES]
        if isinstance(entry, dict)
    ]
