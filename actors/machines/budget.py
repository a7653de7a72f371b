"""What a delivery costs and what becomes of it: the one place that decides dead letters."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from actors.delivery import BUDGET, Dead, Delivery, HandBack, Retry, Verdict

FIRST_BACKOFF_S: Final = 1.0
LONGEST_BACKOFF_S: Final = 30.0
"""1 s doubling to 30 s spreads 25 deliveries over about ten minutes (docs/contract.md 37)."""


class Backoff(Struct, frozen=True):
    """How long a failed message waits: `first_s`, doubled with each failure up to `longest_s`.
    A suite or a test may hurry; whatever is run in earnest keeps the numbers of the contract."""

    first_s: float = FIRST_BACKOFF_S
    longest_s: float = LONGEST_BACKOFF_S


def backoff_s(failures: int, policy: Backoff = Backoff()) -> float:  # noqa: B008 - it is frozen
    """Seconds to wait after the `failures`-th failure (1 is the first)."""
    if failures < 1:
        raise ValueError(f"a backoff needs a failure, got {failures}")
    return float(min(policy.longest_s, policy.first_s * 2.0 ** min(failures - 1, 30)))


def spent(delivery: Delivery) -> bool:
    """True when this delivery was the last of its budget. An unknown count never is:
    the broker's own, higher limit bounds that loop."""
    return delivery.count is not None and delivery.count >= BUDGET


OVERSPENT: Final = "its last run ended with the process that ran it"
"""Why a message beyond its budget died: no handler said so, and none can be asked."""


def overspent(delivery: Delivery) -> bool:
    """True beyond the last delivery of the budget: then it is not run again."""
    return delivery.count is not None and delivery.count > BUDGET


def give_back(delivery: Delivery, reason: str, retry_after_s: float | None = None) -> Verdict:
    """Behind the waiting mail after `retry_after_s`, or to the head without one - unless the
    budget is spent: then a dead letter, whoever gives it back and why."""
    if spent(delivery):
        return Dead(reason=reason)
    return HandBack() if retry_after_s is None else Retry(delay_s=retry_after_s)


class Failures:
    """Failures per message, in this attachment's memory. Deliveries are counted apart from
    them: a hand-off costs a delivery and is nobody's failure."""

    def __init__(self, policy: Backoff = Backoff()) -> None:  # noqa: B008 - it is frozen
        self._policy = policy
        self._of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._of)

    def failed(self, position: int) -> float:
        """Count a failure of the message at `position`; the backoff that it earns."""
        self._of[position] = self._of.get(position, 0) + 1
        return backoff_s(self._of[position], self._policy)

    def forget(self, position: int) -> None:
        self._of.pop(position, None)

    def clear(self) -> None:
        self._of.clear()
