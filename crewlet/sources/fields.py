"""Careful readers of decoded JSON: a field that is missing or of another kind is absent.

A vendor sends null where its documents promise an object, and a number where they promise text.
None of these raises on anything that a JSON decoder returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

Payload: TypeAlias = Mapping[str, Any]

MAX_ITEMS: Final = 100
"""Entries read of any list: a payload may hold a million labels, nobody reads them."""

MAX_TEXT: Final = 2000
"""Characters kept of a short text (a name, an address): bodies are never cut."""

_MAX_NAME: Final = 255
_MAX_EPOCH_MS: Final = 10**14  # the year 5138
_NOTHING: Final[Payload] = {}


def at(payload: object, *path: str) -> Any:
    """What stands at `path`, None where some step is missing or no object."""
    value: Any = payload
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def obj(payload: object, *path: str) -> Payload:
    """The object at `path`, an empty one otherwise."""
    value = at(payload, *path)
    return value if isinstance(value, dict) else _NOTHING


def text(payload: object, *path: str) -> str:
    """The text at `path` in full, '' otherwise."""
    value = at(payload, *path)
    return value if isinstance(value, str) else ""


def short(payload: object, *path: str) -> str:
    """The text at `path`, at most MAX_TEXT characters of it."""
    return text(payload, *path)[:MAX_TEXT]


def name(payload: object, *path: str) -> str:
    """The text at `path` if it can be somebody's name: printable, 255 characters at most."""
    value = text(payload, *path)
    fits = len(value) <= _MAX_NAME and value.isprintable() and value.strip() == value
    return value if fits else ""


def number(payload: object, *path: str) -> int | None:
    """The positive whole number at `path` that a JSON reader of any language keeps exactly."""
    value = at(payload, *path)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value < 2**53 else None


def flag(payload: object, *path: str) -> bool | None:
    """The true or false at `path`."""
    value = at(payload, *path)
    return value if isinstance(value, bool) else None


def items(payload: object, *path: str) -> list[Any]:
    """The first MAX_ITEMS entries of the list at `path`."""
    value = at(payload, *path)
    return value[:MAX_ITEMS] if isinstance(value, list) else []


def names(payload: object, path: Iterable[str], key: str) -> list[str]:
    """The names under `key` of each entry of a list of objects."""
    return [found for entry in items(payload, *path) if (found := name(entry, key))]


def moment(payload: object, *path: str) -> str:
    """The RFC 3339 time at `path` as the vendor wrote it, '' where it is none."""
    value = short(payload, *path)
    try:
        msgspec.convert(value, datetime)
    except msgspec.MsgspecError:
        return ""
    return value


def epoch_ms(payload: object, *path: str) -> str:
    """The RFC 3339 time of the milliseconds since 1970 at `path`, '' where it is none."""
    value = number(payload, *path)
    if value is None or value >= _MAX_EPOCH_MS:
        return ""
    stamp = datetime.fromtimestamp(value // 1000, UTC)
    return f"{stamp:%Y-%m-%dT%H:%M:%S}.{value % 1000:03}Z"


def first(values: Iterable[str]) -> str:
    """The first that says something."""
    return next((value for value in values if value), "")


def stated(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that say something: no None, no empty text, no empty list."""
    return {key: value for key, value in values.items() if value not in (None, "", [])}
