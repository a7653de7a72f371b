"""What a broker's client remembers of its deliveries, to say it again after a broken line.

The real client does the same (crewlet.broker.repairs): words that were on their way when the
connection broke may be lost, and so may deliveries; the broker's list of what is out tells.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from actors.delivery import Delivery, Done, HandBack, Retry, Verdict

SAID: Final = 1024
"""How many finished messages are remembered."""


class Remembered:
    """Of one mailbox, in one process."""

    def __init__(self) -> None:
        self._out: dict[int, None] = {}
        self._resting: dict[int, float] = {}
        self._done: dict[int, None] = {}
        self._order: deque[int] = deque()
        self._last: dict[int, Delivery] = {}

    def took(self, deliveries: Iterable[Delivery]) -> None:
        for one in deliveries:
            self._out[one.position] = None
            self._resting.pop(one.position, None)
            self._done.pop(one.position, None)
            self._last[one.position] = one

    def told(self, delivery: Delivery, verdict: Verdict, now: float) -> None:
        position = delivery.position
        self._out.pop(position, None)
        self._resting.pop(position, None)
        match verdict:
            case Retry(delay_s=delay_s):
                self._resting[position] = now + delay_s
            case HandBack():
                pass
            case _:
                self._done[position] = None
                self._order.append(position)
                if len(self._order) > SAID:
                    old = self._order.popleft()
                    self._done.pop(old, None)
                    self._last.pop(old, None)

    def words(self, out: Iterable[int], now: float) -> list[tuple[int, Verdict]]:
        """What to say of each message that the broker counts as out; nothing of what is here."""
        said: list[tuple[int, Verdict]] = []
        for position in sorted(out):
            if position in self._out:
                continue
            if position in self._resting:
                left_s = self._resting[position] - now
                said.append((position, Retry(left_s) if left_s > 0 else HandBack()))
            else:
                said.append((position, Done() if position in self._done else HandBack()))
        return said

    def delivery(self, position: int) -> Delivery | None:
        """As it was last handed over; None for one that never came here."""
        return self._last.get(position)
