"""What happens to an actor whose handler raised."""

from __future__ import annotations

from random import Random
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Action: TypeAlias = Literal["restart", "resume", "stop", "escalate"]
Scope: TypeAlias = Literal["one_for_one", "all_for_one"]


class Supervision(Struct, frozen=True):
    """The rule a parent gives with `spawn`.

    `on_failure`:
      - restart: a new incarnation behind the same address and mailbox, after a backoff of
        `backoff_s` that doubles with each restart of the window up to `backoff_cap_s`
        (the system's seeded chance takes up to half of it off);
      - resume: the same incarnation goes on with the next message;
      - stop: it ends;
      - escalate: it ends, and its parent fails for the same reason.

    More than `most` restarts within `within_s` seconds: `when_exceeded`. `scope` says whether
    a restart or a stop takes the siblings along. A failed start can't be resumed: it stops.
    """

    on_failure: Action = "restart"
    scope: Scope = "one_for_one"
    most: int = 5
    within_s: float = 60.0
    backoff_s: float = 0.1
    backoff_cap_s: float = 30.0
    when_exceeded: Literal["stop", "escalate"] = "stop"


RESTART: Final = Supervision()
"""The default: restart with backoff, stop after the sixth failure in a minute."""


class Intensity:
    """The restarts of one actor within its window."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: list[float] = []

    def admit(self, rule: Supervision, now: float) -> bool:
        """Count one more restart at `now`; False if the rule does not allow it."""
        self._times = [t for t in self._times if now - t < rule.within_s]
        if len(self._times) >= rule.most:
            return False
        self._times.append(now)
        return True

    def backoff(self, rule: Supervision, chance: Random) -> float:
        """Seconds to wait before the restart that was admitted last."""
        doublings = min(max(len(self._times) - 1, 0), 63)
        return min(rule.backoff_cap_s, rule.backoff_s * 2.0**doublings) * (
            0.5 + 0.5 * chance.random()
        )
