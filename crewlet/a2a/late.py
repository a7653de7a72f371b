"""Answers that are written down and not handed on: known from what the store tells, without asking.

The turn that gave one hands it on as soon as it has completed. One that lies for longer was left by
a node that died in between, or that could not reach the broker.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from crewlet.a2a.upkeep import LATE_S, LATE_TRIES
from crewlet.coordination.store import Entry


class _State(Struct):
    """As much of a channel as matters here."""

    state: str = ""


class Late:
    """By channels: when each is looked at next, and how often it was. Monotonic seconds."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[float, int]] = {}

    def heard(self, entry: Entry, now: float) -> None:
        """A channel as it is now. One that was heard of before keeps its time."""
        if not entry.gone and _is_answered(entry.value):
            self._waiting.setdefault(entry.key, (now + LATE_S, 0))
        else:
            self._waiting.pop(entry.key, None)

    def due(self, now: float) -> list[str]:
        """Those to look at now; each again in as long, for so many times."""
        found = [id for id, (at, _) in self._waiting.items() if at <= now]
        for id in found:
            _, tries = self._waiting.pop(id)
            if tries + 1 < LATE_TRIES:
                self._waiting[id] = (now + LATE_S, tries + 1)
        return found


def _is_answered(value: bytes) -> bool:
    try:
        return msgspec.json.decode(value, type=_State).state == "answered"
    except msgspec.MsgspecError:
        return False
