"""GitLab's `changes`: fields with what they were and what they are now."""

from __future__ import annotations

from typing import Final

from crewlet.sources import fields
from crewlet.sources.changes import change, is_bookkeeping, spoken
from crewlet.sources.fields import Payload

_MAX_CHANGES: Final = 50
_UNTOLD: Final = frozenset(
    {"id", "iid", "author_id", "state", "state_id", "total_time_spent", "time_change"}
)
"""What never changes or the event's own name says already, and sums."""


def read(changes: Payload) -> list[str]:
    """The changes that tell somebody something: `reviewers: (none) → octo.qa`; of a text, or of
    what has no readable value, the field alone."""
    named = [name for name in list(changes)[:_MAX_CHANGES] if not is_bookkeeping(name)]
    return [_change(name, changes) for name in named if name not in _UNTOLD]


def _change(name: str, changes: Payload) -> str:
    sides = [_written(fields.at(changes, name, side)) for side in ("previous", "current")]
    return change(spoken(name), *sides)


def _written(value: object) -> str:
    """A text, a number, true or false; of people and labels their names."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(filter(None, map(_named, value[: fields.MAX_ITEMS])))
    return str(value) if isinstance(value, str | int) else ""


def _named(thing: object) -> str:
    """A person or a label by name; of a reviewer, whether it is the second time of asking."""
    found = fields.name(thing, "username") or fields.name(thing, "title")
    return f"{found} (asked again)" if found and fields.flag(thing, "re_requested") else found
