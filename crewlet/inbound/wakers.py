"""Who wakes a seat, and how often: what two that answer each other for ever look like.

Outside the company nothing counts their depth, so that nothing ends such a loop by itself; it can
be seen, and ended by a person (docs/field-reports.md, C43).
"""

from __future__ import annotations

from collections import Counter, deque
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from crewlet.sources import contact_kind
from crewlet.turn import Turn

WINDOW: Final = timedelta(minutes=10)
"""How far back it is counted."""

MOST: Final = 1000
"""Wakes that are remembered of one seat: a turn every 0.6 s of the window."""

LOOP_TURNS: Final = 20
LOOP_SHARE: Final = 0.8
"""So many turns in the window, and this part of all, woken by one colleague, are a loop."""


class HasHandle(Protocol):
    @property
    def handle(self) -> str: ...


class CompanyLike(Protocol):
    def seat(self, handle: str) -> HasHandle | None: ...
    def by_contact(self, kind: str, value: str) -> HasHandle | None: ...


class Waker(Struct, frozen=True):
    """Whoever woke a seat most: `turns` of its `total` within the window."""

    who: str
    turns: int
    total: int

    @property
    def loops(self) -> bool:
        """Whether it looks like two that answer each other."""
        return self.turns >= LOOP_TURNS and self.turns >= LOOP_SHARE * self.total


class Wakes:
    """Of one seat, on one node."""

    def __init__(self) -> None:
        self._seen: deque[tuple[datetime, str]] = deque(maxlen=MOST)

    def woken(self, by: str, at: datetime) -> None:
        self._seen.append((at, by))

    def most(self, now: datetime) -> Waker | None:
        """None where nobody woke it within the window."""
        while self._seen and now - self._seen[0][0] > WINDOW:
            self._seen.popleft()
        if not self._seen:
            return None
        ((who, turns),) = Counter(by for _, by in self._seen).most_common(1)
        return Waker(who, turns, len(self._seen))


def waker_of(turn: Turn, company: CompanyLike) -> str:
    """The handle of the seat behind the latest event, or the sender as the event names it."""
    last = turn.events[-1]
    kind = contact_kind(str(last.metadata.get("source", "")))
    seat = company.by_contact(kind, last.sender) if kind else company.seat(last.sender)
    return last.sender if seat is None else seat.handle
