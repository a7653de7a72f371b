"""Paths into JSON, as a company's file writes them: `event.type`, `owners[*].name`, `items[0]`.

A key that holds a dot, a bracket, a quote or a space is written in quotes: `["a.b"].c`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from crewlet.sources.fields import MAX_ITEMS

Step: TypeAlias = str | int | None
"""A key, an index, or None for every entry of a list."""

MAX_STEPS: Final = 16

_STEP: Final = re.compile(
    r"""
      (?P<dot>\.)?(?P<key>[^.\[\]"'\s]{1,200})
    | \[(?P<index>[0-9]{1,4})\]
    | \[(?P<every>\*)\]
    | \["(?P<quoted>[^"\\]{1,200})"\]
    """,
    re.VERBOSE,
)


class BadPath(ValueError):
    """A text that is no path; the message is a sentence for whoever wrote it."""


@lru_cache(maxsize=512)
def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path. Raises BadPath."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match["key"] and bool(match["dot"]) != bool(steps)):
            raise BadPath(
                f"no step of a path stands at character {at + 1}; write it like `event.type`, "
                '`items[0].id`, `owners[*].name` or `["a.b"].c`'
            )
        steps.append(_step(match))
        at = match.end()
    if not steps:
        raise BadPath("the path is empty; write it like `event.type`")
    if len(steps) > MAX_STEPS:
        raise BadPath(f"the path has {len(steps)} steps, at most {MAX_STEPS} are allowed")
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["every"]:
        return None
    return int(match["index"]) if match["index"] else match["key"] or match["quoted"]


def takes_many(path: str) -> bool:
    """Whether the path has a `[*]`, and so may lead to several values."""
    return None in parse_path(path)


def values(payload: object, path: str) -> list[object]:
    """What stands at the path, in order, MAX_ITEMS at most; a step that leads nowhere is none."""
    found = [payload]
    for step in parse_path(path):
        found = [inner for value in found for inner in _down(value, step)][:MAX_ITEMS]
    return found


def _down(value: object, step: Step) -> Iterator[object]:
    if step is None and isinstance(value, list):
        yield from value[:MAX_ITEMS]
    elif isinstance(step, int) and isinstance(value, list):
        yield from value[step : step + 1]
    elif isinstance(step, str) and isinstance(value, dict) and step in value:
        yield value[step]
