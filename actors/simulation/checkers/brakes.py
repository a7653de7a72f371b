"""A seat that is held or quiesced takes nothing, and pays nothing for it: S19."""

from __future__ import annotations

from typing import Final

from actors.simulation.checkers.checker import Checker, Fail, Rules, who
from actors.simulation.history import Record

RECALL_S: Final = 0.5
"""A fetch that was outstanding when the brake landed ends within this, where nothing is wrong."""

SETTLE_S: Final = 5.0
"""... and within this after the last trouble, whatever the line does."""


class Brakes(Checker):
    """Only what the holder itself has confirmed counts, and only while it stays the holder."""

    def __init__(self, rules: Rules, fail: Fail) -> None:
        super().__init__(rules, fail)
        self._held: dict[str, dict[str, tuple[str, float]]] = {}
        self._troubled: dict[str, float] = {}

    def on_hold(self, record: Record) -> None:
        self._held.setdefault(record.seat, {})[record.code] = who(record), record.t

    def on_lift(self, record: Record) -> None:
        self._held.get(record.seat, {}).pop(record.code, None)

    def on_grant(self, record: Record) -> None:
        self._held.pop(record.seat, None)

    def on_release(self, record: Record) -> None:
        self._held.pop(record.seat, None)

    def on_fault(self, record: Record) -> None:
        """A node in trouble cannot end its fetch at the broker; `sent` is for how long."""
        until = record.t + record.sent
        self._troubled[record.node] = max(until, self._troubled.get(record.node, 0.0))

    def on_deliver(self, record: Record) -> None:
        for holder, since in self._held.get(record.seat, {}).values():
            trouble = max(self._troubled.get(record.node, 0.0), self._troubled.get("", 0.0))
            settled = max(since + RECALL_S, trouble + SETTLE_S if trouble else 0.0)
            if holder == who(record) and record.t > settled:
                self.fail(
                    "S19", f"{record.msg} was handed to {record.seat}, held since {since:.3f}"
                )
