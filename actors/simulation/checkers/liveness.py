"""What must happen once nothing goes wrong any more: L1 to L8.

Checked in the calm only. The fleet's drills - a kill, a node that leaves, a lost leader, a
lifted hold - happen there one after the other, each with its own deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from actors.simulation.checkers.checker import Audit, Checker, Fail, Rules, who
from actors.simulation.checkers.excuses import FORGOTTEN, LOST, Excuses
from actors.simulation.history import Record
from actors.simulation.links import UNREPAIRED

SLACK_S: Final = 0.5
"""Lines, rounds and the world's own granularity."""


class Awaited(Struct):
    """Something that has to happen by `until`."""

    invariant: str
    until: float
    text: str


class Liveness(Checker):
    """`tick` is called twice a second with what is out at the broker."""

    def __init__(self, rules: Rules, fail: Fail) -> None:
        super().__init__(rules, fail)
        self.calm: float | None = None
        self._awaited: dict[tuple[str, str], Awaited] = {}
        self._holder: dict[str, tuple[str, float]] = {}
        self._landed: dict[tuple[str, int], tuple[str, bool]] = {}
        self._count: dict[tuple[str, int], int] = {}
        self._orphans: dict[tuple[str, int], float] = {}
        self._told: dict[tuple[str, int], None] = {}
        self._released: dict[str, float] = {}
        self._stored: dict[tuple[str, str], float] = {}
        self._steady: float | None = None
        self._back: dict[tuple[str, int], None] = {}
        self._over: set[tuple[str, int]] = set()
        self.excuses = Excuses()
        self.graceful: list[float] = []
        self.takeovers: list[float] = []

    # -- who has what ---------------------------------------------------------------------

    def on_calm(self, record: Record) -> None:
        self.calm = record.t

    def on_grant(self, record: Record) -> None:
        before = self._holder.get(record.seat)
        self._holder[record.seat] = who(record), record.t
        if self._steady is not None and before is not None and before[0] != who(record):
            self.fail("L7", f"{record.seat} moved from {before[0]} to {who(record)}: a lost leader")

    def on_deliver(self, record: Record) -> None:
        self._back.pop((record.seat, record.seq), None)
        self._over.discard((record.seat, record.seq))
        self.excuses.drop((record.seat, record.seq), record.t, self.calm)
        self._landed[record.seat, record.seq] = who(record), False
        self._count[record.seat, record.seq] = record.dc
        self._happened("first delivery", record)
        self._happened("lifted", record)

    def on_reclaim(self, record: Record) -> None:
        """What others held of the seat is queued now, in the broker's memory."""
        for at, (owner, _) in self._landed.items():
            if at[0] == record.seat and owner != who(record):
                self._goes_back(at)

    def on_got(self, record: Record) -> None:
        """Who stood still may take what others have had since: that is nobody's."""
        if record.dc >= self._count.get((record.seat, record.seq), 0):
            self._landed[record.seat, record.seq] = who(record), True

    def on_ack(self, record: Record) -> None:
        self._ended(record)

    def on_nak(self, record: Record) -> None:
        self._settled(record)

    def on_defer(self, record: Record) -> None:
        self._goes_back((record.seat, record.seq))
        self._settled(record)

    def on_dlq(self, record: Record) -> None:
        self._ended(record)

    def _goes_back(self, place: tuple[str, int]) -> None:
        """Unless another had ended it by then: nothing is left of it that a broker could forget."""
        if place not in self._over:
            self._back[place] = None

    def _ended(self, record: Record) -> None:
        """Also by a former holder, and after its heir has handed it back."""
        self._over.add((record.seat, record.seq))
        self._back.pop((record.seat, record.seq), None)
        self._settled(record)

    def _settled(self, record: Record) -> None:
        self.excuses.drop((record.seat, record.seq), record.t, self.calm)
        self._landed.pop((record.seat, record.seq), None)

    def on_pub_ack(self, record: Record) -> None:
        if self.calm is not None:
            self._stored.setdefault((record.seat, record.msg), record.t)

    def on_turn_letter(self, record: Record) -> None:
        """The first one after the seat was let go of, if it waited then."""
        released = self._released.get(record.seat)
        if released is None or released > record.t:
            return
        del self._released[record.seat]
        took_s = record.t - released
        if self._stored.get((record.seat, record.msg), 0.0) > released:
            return
        self.graceful.append(took_s)
        if took_s > self.rules.graceful_s + SLACK_S:
            self.fail("L2", f"{record.seat} was worked {took_s:.3f} s after it was let go of")

    # -- what is known to be missed ---------------------------------------------------------

    def on_fault(self, record: Record) -> None:
        """A killed broker forgets what was handed back; only a client that lives says it again."""
        self.excuses.fault(record)
        if record.code == "broker_restart" and self.rules.excuse:
            self.excuses.give(self._back, FORGOTTEN, record)

    def on_note(self, record: Record) -> None:
        """After an outage of more than 10 s a client leaves what is out to its owner's reclaim,
        and an owner whose session outlived the outage makes none. Nor does one that lets go of
        a mailbox whose last fetch was cut off."""
        if record.code == UNREPAIRED and self.rules.excuse:
            mine = [
                at
                for at, (owner, _) in self._landed.items()
                if owner == who(record) and record.seat in ("", at[0])
            ]
            self.excuses.give(mine, LOST, record)

    # -- drills ---------------------------------------------------------------------------

    def on_drill(self, record: Record) -> None:
        """`crash` names a seat with mail in flight whose holder was killed; `leave` a seat with
        mail whose holder leaves; `lift` a seat with mail whose hold was lifted; `leader_loss`
        and `leader_back` bracket an outage shorter than what a lease outlasts."""
        match record.code:
            case "crash":
                until = record.t + self.rules.ttl_s + 1.0 + SLACK_S
                self._await("first delivery", "L1", record, until)
            case "lift":
                until = record.t + self.rules.lift_s + SLACK_S
                self._await("lifted", "L8", record, until)
            case "leave":
                self._released[record.seat] = float("inf")
            case "leader_loss":
                self._steady = record.t
            case "leader_back":
                self._steady = None

    def on_release(self, record: Record) -> None:
        if record.seat in self._released:
            self._released[record.seat] = record.t

    def _await(self, what: str, invariant: str, record: Record, until: float) -> None:
        text = f"{record.seat}: no {what} within {until - record.t:.1f} s"
        self._awaited[what, record.seat] = Awaited(invariant, until, text)

    def _happened(self, what: str, record: Record) -> None:
        awaited = self._awaited.pop((what, record.seat), None)
        if awaited is None:
            return
        if awaited.invariant == "L1":
            self.takeovers.append(record.t - awaited.until + self.rules.ttl_s + 1.0 + SLACK_S)
        if record.t > awaited.until:
            self.fail(awaited.invariant, awaited.text)

    # -- twice a second -------------------------------------------------------------------

    def tick(self, now: float, out: Iterable[tuple[str, int]], alive: Mapping[str, bool]) -> None:
        """`out` is what the broker believes somebody holds, `alive` which processes run."""
        for key, awaited in list(self._awaited.items()):
            if now > awaited.until:
                del self._awaited[key]
                self.fail(awaited.invariant, awaited.text)
        if self.calm is not None:
            for place, excuse in self.excuses.run_out(now, self.calm):
                if self._in_hand(place, alive):  # of one whose turns take their time
                    continue
                self.fail("L4", f"{place[0]} {place[1]} is in nobody's hands still ({excuse})")
        orphans: dict[tuple[str, int], float] = {}
        for place in out:
            holder, since = self._holder.get(place[0], ("", now))
            if place in self.excuses:
                continue
            if holder and alive.get(holder) and not self._in_hand(place, alive):
                orphans[place] = self._orphans.get(place, max(now, since))
                calm = (self.calm or 0.0) + self.rules.lost_s
                self._judge(place, now, max(orphans[place], since, calm))
        self._orphans = orphans

    def _in_hand(self, place: tuple[str, int], alive: Mapping[str, bool]) -> bool:
        """Whoever holds the seat has it, and lives."""
        holder, _ = self._holder.get(place[0], ("", 0.0))
        owner, landed = self._landed.get(place, ("", False))
        return landed and owner == holder and bool(alive.get(holder))

    def _judge(self, place: tuple[str, int], now: float, since: float) -> None:
        if self.calm is not None and now - since > self.rules.reclaim_s + SLACK_S:
            if place in self._told:
                return
            self._told[place] = None
            owner, landed = self._landed.get(place, ("nobody", False))
            how = "has" if landed else "never got"
            self.fail("L3", f"{place[0]} {place[1]} is out, and {owner} {how} it")

    # -- the end --------------------------------------------------------------------------

    def end(self, audit: Audit) -> None:
        for one in audit.retained:
            if one.seat not in audit.braked and not one.stuck:
                excuse = self.excuses.get((one.seat, one.seq))
                why = f" ({excuse})" if excuse else ""
                self.fail("L4", f"{one.seat} {one.seq} still waits, {one.dc} deliveries later{why}")

    def figures(self) -> Mapping[str, float]:
        """Seconds from a release to the successor's turn, and from a kill to the delivery."""
        told = {"graceful": sorted(self.graceful), "takeover": sorted(self.takeovers)}
        figures = {name: times[-1] for name, times in told.items() if times}
        longest = {"excused_s": self.excuses.longest_s} if self.excuses.longest_s else {}
        return {**figures, **longest, "excused": float(self.excuses.given)}
