"""Control is never behind the inbox: the other half of S21.

What starts, ends or answers a long run comes through a seat's control mailbox while its inbox is
held or busy for as long as it likes. So it is worked within a moment, whatever the inbox does.
"""

from __future__ import annotations

from typing import Final

from actors.simulation.checkers.checker import Audit, Checker, Fail, Rules
from actors.simulation.history import Record

OBEYED_S: Final = 1.0
"""As long as it takes a node that has nothing against it: a fetch stands at the broker."""

SETTLE_S: Final = 30.0
"""So long after a node or the broker was in trouble, a seat may still be without its fetch."""


class Control(Checker):
    """Counts from when a command was stored, its seat was taken, and all was well."""

    def __init__(self, rules: Rules, fail: Fail) -> None:
        super().__init__(rules, fail)
        self._waiting: dict[tuple[str, str], float] = {}
        self._granted: dict[str, float] = {}
        self._troubled: dict[str, float] = {}

    def on_command(self, record: Record) -> None:
        self._waiting[record.seat, record.msg] = record.t

    def on_grant(self, record: Record) -> None:
        self._granted[record.seat] = record.t

    def on_fault(self, record: Record) -> None:
        """`sent` is for how long; a node that is not named is the broker, or all of them."""
        until = record.t + record.sent + SETTLE_S
        self._troubled[record.node] = max(until, self._troubled.get(record.node, 0.0))

    def on_obeyed(self, record: Record) -> None:
        stored = self._waiting.pop((record.seat, record.msg), None)
        if stored is None:  # at least once: another had it before
            return
        well = max(self._troubled.get(record.node, 0.0), self._troubled.get("", 0.0))
        since = max(stored, self._granted.get(record.seat, 0.0), well)
        if record.t > since + OBEYED_S:
            waited = record.t - since
            self.fail("S21", f"{record.msg} waited {waited:.3f} s in {record.seat}'s control")

    def end(self, audit: Audit) -> None:
        for seat, msg in self._waiting:
            self.fail("S21", f"{msg} was never worked by {seat}")
