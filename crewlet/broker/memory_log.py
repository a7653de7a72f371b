"""What the twin keeps beside mailboxes: positions, ids seen lately, and retained messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from crewlet import topics

DEDUPE_S: Final = 120.0
"""How long a message id is remembered. It must outlast the retries of a publish."""

DEAD_DEDUPE_S: Final = 3600.0
"""The same for dead letters: one whose message could not be taken out is given up again when
the ack window of 30 minutes has ended."""

HISTORY: Final = 10_000
"""Retained messages of a namespace: the newest are kept."""

AGE_S: Final = {
    topics.namespace_of_pattern(topics.EVENTS): 30 * 24 * 3600.0,
    topics.namespace_of_pattern(topics.CONFIG): 3600.0,
}
"""Namespaces that retain what was published, and for how long (docs/contract.md 29, 30)."""

_DEAD: Final = topics.namespace_of_pattern(topics.DEAD_LETTERS)


@dataclass(frozen=True, slots=True)
class Retained:
    """A message that was published on a retained namespace."""

    topic: str
    position: int
    message_id: str
    body: bytes
    at: float


@dataclass(slots=True)
class Namespace:
    """One namespace of topics: its own positions and its own window of ids."""

    age_s: float | None = None
    dedupe_s: float = DEDUPE_S
    _last: int = 0
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    _retained: deque[Retained] = field(default_factory=lambda: deque(maxlen=HISTORY))

    def known(self, message_id: str, now: float) -> int | None:
        """The position of a message that came under this id within the window."""
        while self._seen:
            oldest, (_, at) = next(iter(self._seen.items()))
            if now - at < self.dedupe_s:
                break
            del self._seen[oldest]
        seen = self._seen.get(message_id) if message_id else None
        return None if seen is None else seen[0]

    def append(self, topic: str, message_id: str, body: bytes, now: float) -> int:
        """Give the message its position; keep it where the namespace retains."""
        self._last += 1
        if message_id:
            self._seen[message_id] = (self._last, now)
        if self.age_s is not None:
            self._retained.append(Retained(topic, self._last, message_id, body, now))
        return self._last

    def restarted(self, held: Set[int]) -> None:
        """Ids are read back from the messages that are still there."""
        if self.age_s is None:
            self._seen = {id: seen for id, seen in self._seen.items() if seen[0] in held}

    def retained(self, now: float) -> list[Retained]:
        """What is not older than the age, oldest first."""
        while self.age_s is not None and self._retained:
            if now - self._retained[0].at < self.age_s:
                break
            self._retained.popleft()
        return list(self._retained)


class MemoryLog:
    """All namespaces. One comes into being with the first message on it."""

    def __init__(self) -> None:
        self._namespaces: dict[str, Namespace] = {}

    def of(self, topic: str) -> Namespace:
        """The namespace of a topic or pattern; ValueError where it names none."""
        name = topics.namespace(topic)
        if name not in self._namespaces:
            self._namespaces[name] = Namespace(
                age_s=AGE_S.get(name),
                dedupe_s=DEAD_DEDUPE_S if name == _DEAD else DEDUPE_S,
            )
        return self._namespaces[name]

    def restarted(self, held: Mapping[str, Set[int]]) -> None:
        """The broker came back; `held` are the positions that are in a mailbox, by namespace.
        Dead letters are kept for their age."""
        for name, namespace in self._namespaces.items():
            if name != _DEAD:
                namespace.restarted(held.get(name, frozenset()))
