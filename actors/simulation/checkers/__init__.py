"""The promises of docs/guide/simulation.md, checked record by record, a family a file."""

from __future__ import annotations

from collections.abc import Sequence

from actors.simulation.checkers.brakes import Brakes
from actors.simulation.checkers.checker import Audit, Checker, Fail, Retained, Rules, Violation
from actors.simulation.checkers.control import Control
from actors.simulation.checkers.liveness import Liveness
from actors.simulation.checkers.messages import Messages
from actors.simulation.checkers.order import Order
from actors.simulation.checkers.ownership import Ownership
from actors.simulation.checkers.starvation import Starvation

__all__ = [
    "Audit",
    "Brakes",
    "Checker",
    "Control",
    "Fail",
    "Liveness",
    "Messages",
    "Order",
    "Ownership",
    "Retained",
    "Rules",
    "Starvation",
    "Violation",
    "all_checkers",
]

FAMILIES: Sequence[type[Checker]] = (
    Ownership,
    Messages,
    Order,
    Brakes,
    Control,
    Liveness,
    Starvation,
)


def all_checkers(rules: Rules, fail: Fail) -> list[Checker]:
    """One of each family."""
    return [family(rules, fail) for family in FAMILIES]
