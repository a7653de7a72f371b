"""Who may work a seat: S1 to S5.

Nothing here looks at a node's clock: a session is judged by when its last applied renewal was
sent, a fence by the order in which the broker took the writes.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct

from actors.simulation.checkers.checker import Checker, Fail, Rules, who
from actors.simulation.history import Record

RENEWALS: Final = 8
"""How many of a session are kept: a turn that starts may have asked its gate some of them ago."""


class Session(Struct):
    """A node's row as last written by itself. `renewals` are the last times at which that was
    applied, and when it had been sent."""

    inc: int
    epoch: int
    sent: float
    renewals: deque[tuple[float, float]]
    over: bool = False

    def sent_before(self, t: float) -> float:
        """Of the last renewal that its node can have known of at `t`."""
        known = [sent for applied, sent in self.renewals if applied <= t]
        return max(known, default=self.renewals[0][1])


class Grant(Struct):
    """A seat's row as last taken."""

    node: str
    inc: int
    fence: int
    epoch: int
    session: int
    free: bool = False


class Ownership(Checker):
    """Sessions, grants, and what is done under them."""

    def __init__(self, rules: Rules, fail: Fail) -> None:
        super().__init__(rules, fail)
        self._sessions: dict[str, Session] = {}
        self._grants: dict[str, Grant] = {}
        self._resumed: dict[str, float] = {}
        self._got: dict[tuple[str, str], float] = {}
        self._running: dict[str, dict[tuple[str, int], str]] = {}
        self._held: dict[str, dict[str, tuple[str, int, float]]] = {}
        self.handoffs = 0

    # -- sessions -------------------------------------------------------------------------

    def on_session(self, record: Record) -> None:
        known = self._sessions.get(record.node)
        if known is not None and known.epoch == record.dc:
            if known.inc != record.inc:
                self.fail("S1", f"{who(record)} writes under epoch {record.dc} of #{known.inc}")
            elif known.over:
                self.fail("S2", f"{who(record)} renews a session that was ended")
            known.sent = max(known.sent, record.sent)
            known.renewals.append((record.t, record.sent))
            return
        if known is not None and record.dc < known.epoch:
            self.fail("S1", f"{record.node}: epoch {record.dc} after {known.epoch}")
        if known is not None and not known.over and known.inc != record.inc:
            self._ended_early(known, record)
        renewals = deque([(record.t, record.sent)], maxlen=RENEWALS)
        self._sessions[record.node] = Session(record.inc, record.dc, record.sent, renewals)

    def on_session_over(self, record: Record) -> None:
        known = self._sessions.get(record.node)
        if known is not None and not known.over:
            if record.code != "self":
                self._ended_early(known, record)
            known.over = True

    def _ended_early(self, known: Session, record: Record) -> None:
        """By somebody else, who must have waited for a whole TTL on a clock of his own."""
        earliest = known.sent + self.rules.ttl_s * (1 - 2 * self.rules.drift)
        if record.code != "heir" and record.t < earliest:
            after = record.t - known.sent
            self.fail("S2", f"{record.node}#{known.inc} was ended {after:.3f} s after a renewal")

    def on_wiped(self, record: Record) -> None:
        """Nothing that was known of rows holds; fences do: revisions go on."""
        self._sessions.clear()
        for grant in self._grants.values():
            grant.free, grant.epoch = True, 0

    # -- grants ---------------------------------------------------------------------------

    def on_grant(self, record: Record) -> None:
        grant = self._grants.get(record.seat)
        if grant is not None:
            if record.fence <= grant.fence:
                self.fail("S1", f"{record.seat}: fence {record.fence} after {grant.fence}")
            if record.dc <= grant.epoch:
                self.fail("S1", f"{record.seat}: epoch {record.dc} after {grant.epoch}")
            if not grant.free and (grant.node, grant.inc) != (record.node, record.inc):
                self._taken_from(grant, record)
        self.handoffs += 1
        self._held.pop(record.seat, None)
        self._grants[record.seat] = Grant(
            record.node, record.inc, record.fence, record.dc, record.pos
        )

    def _taken_from(self, grant: Grant, record: Record) -> None:
        session = self._sessions.get(grant.node)
        stands = (
            session is not None
            and not session.over
            and (session.inc, session.epoch) == (grant.inc, grant.session)
        )
        if stands:
            self.fail(
                "S2", f"{record.seat} was granted to {who(record)} while {grant.node}#{grant.inc} "
                "held it under a session that stands",
            )  # fmt: skip

    def on_release(self, record: Record) -> None:
        if grant := self._grants.get(record.seat):
            if (grant.node, grant.inc) != (record.node, record.inc):
                self.fail("S1", f"{record.seat} was released by {who(record)}, not its holder")
            grant.free, grant.fence, grant.epoch = True, record.fence, max(grant.epoch, record.dc)

    # -- what is done under a grant -------------------------------------------------------

    def on_complete_ok(self, record: Record) -> None:
        grant = self._grants.get(record.seat)
        if grant is None or grant.free or grant.fence != record.fence:
            last = "nothing" if grant is None else f"{grant.fence} of {grant.node}"
            self.fail(
                "S4", f"{who(record)} completed {record.msg} of {record.seat} under "
                f"{record.fence}; the last was {last}",
            )  # fmt: skip

    def on_turn_start(self, record: Record) -> None:
        """`sent` is when the seat let it begin; what it asks the ledger first takes time."""
        if not self._stopped_before(record):
            self._check_start(record)
        running = self._running.setdefault(record.seat, {})
        mine = (who(record), record.fence)
        if mine in running:
            self.fail("S5", f"{record.seat}: two turns under fence {record.fence} on {who(record)}")
        running[mine] = record.key

    def on_got(self, record: Record) -> None:
        self._got[who(record), record.seat] = record.t

    def _stopped_before(self, record: Record) -> bool:
        """The process stood still between what the seat asked and the start. What came to the
        seat when it went on again was asked about then."""
        resumed = self._resumed.get(record.node)
        got = self._got.get((who(record), record.seat), -1.0)
        return resumed == record.sent and got < record.sent

    def _check_start(self, record: Record) -> None:
        session = self._sessions.get(record.node)
        if session is not None and session.inc == record.inc:
            since = record.sent - session.sent_before(record.sent)
            late = since - self.rules.confirm_s * (1 + 2 * self.rules.drift)
            if late > 1e-6:
                self.fail("S3", f"{who(record)} starts {record.seat} {late:.3f} s too late")
        for node, inc, since in self._held.get(record.seat, {}).values():
            if (node, inc) == (record.node, record.inc) and record.sent > since:
                self.fail("S5", f"{record.seat} starts a turn on {who(record)} while it is held")

    def on_turn_end(self, record: Record) -> None:
        self._running.get(record.seat, {}).pop((who(record), record.fence), None)

    def on_hold(self, record: Record) -> None:
        held = self._held.setdefault(record.seat, {})
        held[record.code] = (record.node, record.inc, record.t)

    def on_lift(self, record: Record) -> None:
        self._held.get(record.seat, {}).pop(record.code, None)

    def on_fault(self, record: Record) -> None:
        if record.code == "resume":
            self._resumed[record.node] = record.t
        elif record.code == "crash":
            gone = f"{record.node}#{record.inc}"
            for running in self._running.values():
                for mine in [mine for mine in running if mine[0] == gone]:
                    del running[mine]
