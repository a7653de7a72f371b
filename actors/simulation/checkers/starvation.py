"""Nobody waits for another's trouble: L5 and L6.

A conversation that waits is started before a younger one is started twice; a partition whose
handler fails delays the others by its own turn and no more.
"""

from __future__ import annotations

from actors.simulation.checkers.checker import CORRUPT, Checker, Fail, Rules, who
from actors.simulation.history import Record


class Starvation(Checker):
    """Counts, for each conversation that a node has in hand, the drains that passed it by."""

    def __init__(self, rules: Rules, fail: Fail) -> None:
        super().__init__(rules, fail)
        self._waiting: dict[tuple[str, str], dict[int, int]] = {}
        self._turns: dict[str, int] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._at: dict[tuple[str, int], str] = {}
        self._failed: dict[tuple[str, str], tuple[str, int]] = {}
        self._running: dict[tuple[str, str], tuple[str, int]] = {}
        self._corrupt: set[tuple[str, int]] = set()

    def on_pub_req(self, record: Record) -> None:
        self._keys[record.seat, record.msg] = record.key

    def on_deliver(self, record: Record) -> None:
        """What cannot be read waits for no turn."""
        self._at[record.seat, record.seq] = self._keys.get((record.seat, record.msg), "")
        if record.msg.startswith(CORRUPT):
            self._corrupt.add((record.seat, record.seq))

    def on_got(self, record: Record) -> None:
        if (record.seat, record.seq) in self._corrupt:
            return
        waiting = self._waiting.setdefault((who(record), record.seat), {})
        waiting[record.seq] = self._turns.get(record.seat, 0)

    def on_turn_start(self, record: Record) -> None:
        """At most one drain of others, and what was dispatched already, goes before a letter."""
        self._turns[record.seat] = turns = self._turns.get(record.seat, 0) + 1
        mine = who(record), record.seat
        waiting = self._waiting.get(mine, {})
        if (failed := self._failed.pop(mine, None)) and failed[0] == record.key:
            self._not_again(record, waiting, failed[1])
        self._running[mine] = record.key, turns
        for seq, since in waiting.items():
            if turns - since > 2 * self.rules.max_batch + 1:
                passed = turns - since
                self.fail("L5", f"{record.seat} {seq} has been passed by {passed} times")
                waiting.pop(seq)
                return

    def on_turn_end(self, record: Record) -> None:
        mine = who(record), record.seat
        running = self._running.pop(mine, None)
        if running is not None and record.code == "nak":
            self._failed[mine] = running

    def _not_again(self, record: Record, waiting: dict[int, int], failed: int) -> None:
        """A conversation that failed lets go first whoever was there when its turn began."""
        for seq, since in waiting.items():
            if since < failed and self._at.get((record.seat, seq)) != record.key:
                text = f"{record.key} of {record.seat} failed and begins again, before {seq}"
                self.fail("L6", text)
                return

    def on_turn_letter(self, record: Record) -> None:
        self._gone(record)

    def on_skip(self, record: Record) -> None:
        self._gone(record)

    def on_ack(self, record: Record) -> None:
        self._gone(record)

    def on_nak(self, record: Record) -> None:
        self._gone(record)

    def on_defer(self, record: Record) -> None:
        self._gone(record)

    def on_dlq(self, record: Record) -> None:
        self._gone(record)

    def _gone(self, record: Record) -> None:
        if waiting := self._waiting.get((who(record), record.seat)):
            waiting.pop(record.seq, None)

    def on_grant(self, record: Record) -> None:
        for key in [key for key in self._waiting if key[1] == record.seat]:
            del self._waiting[key]
