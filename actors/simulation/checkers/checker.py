"""What a checker is: it hears records of some kinds, and says when one breaks a promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from actors.delivery import BUDGET, MAX_BATCH
from actors.machines.budget import Backoff
from actors.simulation.history import KINDS, History, Record


class Violation(Struct, frozen=True):
    """`invariant` is its number in docs/guide/simulation.md."""

    invariant: str
    t: float
    step: int
    text: str


class Rules(Struct, frozen=True):
    """The numbers that promises are measured by; seconds. `lost_s`: a question that was lost with
    the line is given up after so long, and until then nobody knows. `excuse`: what is known to be
    missed (docs/guide/simulation.md) is counted instead of failed. `drain_s`: how long a node that
    leaves waits for turns that run."""

    ttl_s: float = 20.0
    valid_s: float = 17.0
    confirm_s: float = 6.0
    drift: float = 5e-4
    budget: int = BUDGET
    broker_limit: int = 30
    max_batch: int = MAX_BATCH
    backoff: Backoff = Backoff()
    reclaim_s: float = 3.0
    lost_s: float = 5.0
    lift_s: float = 1.0
    graceful_s: float = 1.0
    drain_s: float = 10.0
    excuse: bool = True


class Retained(Struct, frozen=True):
    """A message that is still in a mailbox at the end. `stuck`: it will never come again."""

    seat: str
    seq: int
    dc: int
    stuck: bool = False


class Audit(Struct, frozen=True):
    """What the broker has at the end, seen from inside. `letters` are its dead letters, by seat
    and message; None where nobody looked."""

    retained: tuple[Retained, ...] = ()
    braked: frozenset[str] = frozenset()
    letters: frozenset[tuple[str, str]] | None = None


Fail = Callable[[str, str], None]
"""Called with the invariant and what broke it."""

CORRUPT: Final = "corrupt"
"""How the ids of messages begin that nobody can read: they are dropped, unworked."""


class Checker:
    """Subclasses have a method `on_KIND(record)` for each kind they hear."""

    def __init__(self, rules: Rules, fail: Fail) -> None:
        self.rules = rules
        self.fail = fail

    def listen(self, history: History) -> None:
        for kind in KINDS:
            if hearer := getattr(self, f"on_{kind}", None):
                history.hear(hearer, (kind,))

    def end(self, audit: Audit) -> None:
        """The run is over: what is left is judged."""

    def figures(self) -> Mapping[str, float]:
        """What it measured on the way."""
        return {}


def who(record: Record) -> str:
    return f"{record.node}#{record.inc}"
