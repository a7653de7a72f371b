"""The events of one partition become one trigger: a digest of the earlier ones, the last in full.

Texts are never cut to a length: what somebody wrote is context, and a digest that drops it would
answer half of a conversation. Left out is only what is said again, or no longer so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from crewlet.events import Event, Trace
from crewlet.inbound.constituent import Constituent, constituent_of, told_at, whatever_of

NOTHING_NEW: Final = "(no new content)"
SAID_AGAIN: Final = "(no new content: the same is said again below)"
SUPERSEDED: Final = "(superseded)"
TO_YOU: Final = "to you"

_NOBODY: Final = frozenset({"", "unknown"})
"""Senders of whom nobody knows that they are one and the same."""

_LINE: Final = re.compile(r"(\r\n|\n|\r)(?=[^\r\n])")


class Delegation(Struct, frozen=True, kw_only=True):
    """How deep in a chain of seats that wake one another the work stands."""

    depth: int = 0
    chain: tuple[str, ...] = ()
    parent_turn_id: str = ""


class Trigger(Struct, frozen=True, kw_only=True):
    """What a turn is for. `digest` is empty of a single event, which is passed on as it is."""

    constituents: tuple[Constituent, ...]
    digest: str
    recon: bool
    addressed: bool
    delegation: Delegation
    trace: Trace


def coalesce(events: Sequence[Event]) -> Trigger:
    """One trigger of at least one event, in their order. CorruptEvent where several cannot be
    merged, because one of them is not what its type claims."""
    if len(events) == 1:
        return _trigger(events, (whatever_of(events[0]),), "")
    constituents = tuple(constituent_of(event) for event in events)
    return _trigger(events, constituents, digest(constituents))


def _trigger(events: Sequence[Event], constituents: tuple[Constituent, ...], text: str) -> Trigger:
    """The flags err on the careful side, and so does the depth: merging with a shallow event must
    not let a chain of seats go on for ever. A span has one parent: that of the first, which the
    others are replies to."""
    deepest = max(events, key=lambda event: event.delegation_depth)
    return Trigger(
        constituents=constituents,
        digest=text,
        recon=any(one.recon for one in constituents),
        addressed=any(one.addressed for one in constituents),
        delegation=Delegation(
            depth=deepest.delegation_depth,
            chain=deepest.delegation_chain,
            parent_turn_id=deepest.parent_turn_id,
        ),
        trace=events[0].trace,
    )


def digest(constituents: Sequence[Constituent]) -> str:
    """The text of several: the earlier ones as a list, below the rule the last one as it came."""
    *earlier, last = constituents
    bullets = [_bullet(one, constituents[at + 1 :]) for at, one in enumerate(earlier)]
    blocks = (
        f"## {len(constituents)} messages in one conversation{_about(constituents)}",
        f"These {len(constituents)} messages waited together and are one piece of work. Read "
        "all of them before you do anything, and reply at most once. The earlier ones come first, "
        "in the order of time; the latest stands below the line, in full. "
        + _for_whom(constituents),
        "\n".join(bullets).rstrip("\n"),
        "---",
        _head(last),
        last.body,
    )
    return "\n\n".join(blocks)


def _about(constituents: Sequence[Constituent]) -> str:
    """The conversation's title by the latest message that knows it: many comments do not. Where
    none does, its identity: a reader has to know what to look up."""
    identity = constituents[-1].metadata.get("conversation_identity")
    named = (*(one.subject for one in reversed(constituents)), identity)
    name = next(filter(None, map(_line, named)), "")
    return f": {name}" if name else ""


def _for_whom(constituents: Sequence[Constituent]) -> str:
    """Whether somebody waits for this very seat, and by which of the messages."""
    called = sum(one.addressed for one in constituents)
    if called == len(constituents):
        return "All of them are addressed to you."
    if not called:
        return "None of them is addressed to you."
    return f"Addressed to you is what is marked `{TO_YOU}`."


def _bullet(one: Constituent, later: Sequence[Constituent]) -> str:
    """One earlier message, whatever its text holds: no line of it leaves the bullet."""
    head = f"- {_head(one)}"
    if one.lead:
        return f"{head} {SUPERSEDED}: {_line(one.lead)}"
    if not one.salient.strip():
        return f"{head} {NOTHING_NEW}"
    if _said_again(one, later):
        return f"{head} {SAID_AGAIN}"
    text = _LINE.sub(r"\1  ", one.salient.strip("\r\n"))
    return f"{head}\n\n  {text}\n"


def _said_again(one: Constituent, later: Sequence[Constituent]) -> bool:
    """Whether the same sender's same text is still to come, and is shown there: two people who
    say the same are two facts, and of the superseded only the last is shown."""
    if one.sender in _NOBODY:
        return False
    text = one.salient.strip()
    return any(
        other.sender == one.sender and other.salient.strip() == text
        for at, other in enumerate(later, 1)
        if not other.lead or at == len(later)
    )


def _head(one: Constituent) -> str:
    """Who, when, what and to whom: one line, however the names are written."""
    said = f"**{_sender(one)}** · {told_at(one)} · {_line(one.event_type)}"
    return f"{said} · {TO_YOU}" if one.addressed else said


def _sender(one: Constituent) -> str:
    """The name that people know, and the one that tools take."""
    sender, name = _line(one.sender), _line(one.metadata.get("sender_name"))
    if one.sender in _NOBODY:
        return name or "somebody"
    return f"{name} ({sender})" if name and name.lstrip("@") != sender else sender


def _line(text: object) -> str:
    return " ".join(text.split()) if isinstance(text, str) else ""
