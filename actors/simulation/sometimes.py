"""Rare events that a run has to have seen before its silence means anything.

A simulation whose faults miss is green, too. Each of these is a situation that the promises are
about; a campaign that never met one has shown nothing for it, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from actors.simulation.checkers.checker import who
from actors.simulation.history import History, Record

NAMES: Final = (
    "completion_fenced",
    "completion_fenced_after_a_stop",
    "completion_there_already",
    "skipped_by_the_ledger",
    "session_lapsed_and_begun_anew",
    "session_ended_by_a_peer",
    "session_ended_by_an_heir",
    "seat_taken_from_the_dead",
    "seat_handed_over",
    "claim_lost",
    "mail_reclaimed",
    "strays_reclaimed",
    "delivered_again",
    "delivered_five_times",
    "last_delivery",
    "dead_letter",
    "deferred",
    "backoff_doubled",
    "several_handed_back_at_once",
    "killed_during_a_turn",
    "killed_between_completion_and_ack",
    "stopped_longer_than_a_ttl",
    "stopped_between_check_and_start",
    "resumed_as_a_zombie",
    "node_cut_off",
    "broker_restarted_with_mail_out",
    "leader_lost_with_turns_running",
    "seat_held_by_an_operator",
    "held_seat_changed_hands",
    "published_twice",
)
"""Thirty; docs/guide/simulation.md says what they are for."""

WANTED: Final = 10
"""How often each has to be seen in 10,000 seeds."""


class Sometimes:
    """Counts. It reads the history and decides nothing."""

    def __init__(self) -> None:
        self.seen = dict.fromkeys(NAMES, 0)
        self._holder: dict[str, tuple[str, bool]] = {}
        self._sessions: dict[str, tuple[int, int, bool]] = {}
        self._running: dict[str, str] = {}
        self._completed: dict[tuple[str, str], str] = {}
        self._resumed: dict[str, float] = {}
        self._stopped: dict[str, float] = {}
        self._held: dict[str, None] = {}
        self._back: tuple[str, float] = ("", -1.0)
        self._out = 0

    def listen(self, history: History) -> None:
        for name in dir(self):
            if name.startswith("on_"):
                history.hear(getattr(self, name), (name[3:],))

    def saw(self, name: str) -> None:
        self.seen[name] += 1

    # -- ownership ------------------------------------------------------------------------

    def on_session(self, record: Record) -> None:
        inc, epoch, _over = self._sessions.get(record.node, (record.inc, record.dc, True))
        if inc == record.inc and epoch != record.dc:
            self.saw("session_lapsed_and_begun_anew")
        elif epoch != record.dc and record.code == "heir":
            self.saw("session_ended_by_an_heir")
        self._sessions[record.node] = record.inc, record.dc, False

    def on_session_over(self, record: Record) -> None:
        if record.code == "peer":
            self.saw("session_ended_by_a_peer")

    def on_grant(self, record: Record) -> None:
        holder, free = self._holder.get(record.seat, ("", True))
        if holder and holder != who(record):
            self.saw("seat_handed_over" if free else "seat_taken_from_the_dead")
            if record.seat in self._held:
                self.saw("held_seat_changed_hands")
        self._held.pop(record.seat, None)
        self._holder[record.seat] = who(record), False

    def on_release(self, record: Record) -> None:
        holder, _ = self._holder.get(record.seat, (who(record), False))
        self._holder[record.seat] = holder, True

    def on_note(self, record: Record) -> None:
        if record.code == "claim_lost":
            self.saw("claim_lost")

    # -- turns ----------------------------------------------------------------------------

    def on_turn_start(self, record: Record) -> None:
        self._running[who(record) + record.seat] = record.key
        if self._resumed.get(record.node) == record.sent:
            self.saw("stopped_between_check_and_start")

    def on_turn_end(self, record: Record) -> None:
        self._running.pop(who(record) + record.seat, None)
        if record.code == "defer":
            self.saw("deferred")

    def on_complete_ok(self, record: Record) -> None:
        self._completed[record.seat, record.msg] = who(record)

    def on_complete_rejected(self, record: Record) -> None:
        self.saw("completion_fenced")
        if record.node in self._resumed:
            self.saw("completion_fenced_after_a_stop")

    def on_complete_dup(self, record: Record) -> None:
        self.saw("completion_there_already")

    def on_skip(self, record: Record) -> None:
        self.saw("skipped_by_the_ledger")

    # -- mail -----------------------------------------------------------------------------

    def on_pub_ack(self, record: Record) -> None:
        if record.code == "dup":
            self.saw("published_twice")

    def on_deliver(self, record: Record) -> None:
        self._out += 1
        if record.dc > 1:
            self.saw("delivered_again")
        if record.dc == 5:
            self.saw("delivered_five_times")
        elif record.dc == 25:
            self.saw("last_delivery")

    def on_ack(self, record: Record) -> None:
        self._out = max(0, self._out - 1)
        self._completed.pop((record.seat, record.msg), None)

    def on_nak(self, record: Record) -> None:
        self._out = max(0, self._out - 1)
        if record.sent >= 0.1:
            self.saw("backoff_doubled")

    def on_defer(self, record: Record) -> None:
        self._out = max(0, self._out - 1)
        if self._back == (record.seat, record.t):
            self.saw("several_handed_back_at_once")
        self._back = record.seat, record.t

    def on_dlq(self, record: Record) -> None:
        self.saw("dead_letter")

    def on_reclaim(self, record: Record) -> None:
        if record.pos:
            self.saw("strays_reclaimed" if record.code == "strays" else "mail_reclaimed")

    # -- faults ---------------------------------------------------------------------------

    def on_hold(self, record: Record) -> None:
        self.saw("seat_held_by_an_operator")
        self._held[record.seat] = None

    def on_lift(self, record: Record) -> None:
        self._held.pop(record.seat, None)

    def on_fault(self, record: Record) -> None:
        match record.code:
            case "crash":
                self._on_crash(who(record))
            case "pause":
                self._stopped[record.node] = record.t
                if record.sent > 20.0:
                    self.saw("stopped_longer_than_a_ttl")
            case "resume":
                self._resumed[record.node] = record.t
                if any(h == who(record) for h, _ in self._holder.values()):
                    return
                if record.t - self._stopped.get(record.node, record.t) > 20.0:
                    self.saw("resumed_as_a_zombie")
            case "cut":
                self.saw("node_cut_off")
            case "broker_restart" if self._out:
                self.saw("broker_restarted_with_mail_out")
            case "leader_loss" if self._running:
                self.saw("leader_lost_with_turns_running")

    def _on_crash(self, process: str) -> None:
        mine = [key for key in self._running if key.startswith(process)]
        if mine:
            self.saw("killed_during_a_turn")
        for key in mine:
            del self._running[key]
        if process in self._completed.values():
            self.saw("killed_between_completion_and_ack")
            left = {key: by for key, by in self._completed.items() if by != process}
            self._completed = left


def unseen(seen: Mapping[str, int], seeds: int) -> list[str]:
    """What a campaign of so many seeds did not meet often enough to mean anything."""
    least = max(1, WANTED * seeds // 10_000)
    return [name for name in NAMES if seen.get(name, 0) < least]
