"""Whatever a vendor may send in any place of a payload, and what holds of every reading."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import strategies as st

from crewlet.sources import Notification, Skip
from crewlet.sources.phrases import PHRASES

DROP = object()

HUGE = st.sampled_from(
    ["x" * 70_000, "@a " * 20_000, "\u0000", "\u202e\u200b", "é" * 300, "\r\n\x1b[31m", "team:x"]
)
ODD: st.SearchStrategy[Any] = st.one_of(
    st.just(DROP),
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    HUGE,
    st.just([]),
    st.just({}),
    st.just([None, 1, "a", {"login": 3}, {"login": "b"}, [[]]] * 60),
    st.just({"login": "octo-dev", "full_name": "x/y", "number": 5, "body": "@octo-dev"}),
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path inside a JSON value."""
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    found = [(*path, key) for key, _ in children]
    for key, child in children:
        found += places(child, (*path, key))
    return found


def mutate(value: Any, path: tuple[Any, ...], odd: object) -> None:
    """Put a copy of `odd` at `path` where that still exists."""
    odd = odd if odd is DROP else copy.deepcopy(odd)
    for key in path[:-1]:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return
    if odd is DROP and isinstance(value, dict):
        value.pop(path[-1], None)
    elif isinstance(value, dict) and isinstance(path[-1], str):
        value[path[-1]] = None if odd is DROP else odd


def assert_sound(read: object, vendor: str = "github") -> None:
    """What holds for everything that is ever read."""
    assert isinstance(read, Notification | Skip)
    if isinstance(read, Skip):
        assert read.reason in PHRASES
        assert read.detail
        return
    assert read.partition_key.startswith(read.conversation_identity)
    assert bool(read.partition_key) == bool(read.conversation_identity)
    assert not read.partition_key or read.partition_key.startswith(f"{vendor}:")
    assert read.sender
    assert read.sender.casefold() not in {login.casefold() for login in read.addressed}
    assert read.addressed or read.verdict != "wake"
    assert not read.addressed or read.verdict in ("wake", "lookup")
    assert not read.partition_key or read.verdict != "lookup"
    assert read.body
    assert read.verdict != "follow" or read.partition_key
    assert msgspec.json.decode(msgspec.json.encode(read), type=Notification) == read


ODD_VALUES = [
    DROP, None, True, 0, -1, 7, 2**63, 1.5, "", "x", "\u0000", "@octo-dev", "é" * 300, [], {},
    "x" * 70_000, "@a `b` " * 10_000, [None, 1, {"login": 3}] * 40, {"login": "octo-dev"},
]  # fmt: skip
