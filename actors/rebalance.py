"""The placement supervisor: hears the fleet's rows, and decides what this node takes and gives up.

It looks at the whole each sweep, and soon after anything it hears: a seat that nobody has is taken
at once, sessions that fell silent are ended, and giving up for the sake of balance is braked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import structlog
from msgspec import Struct
from msgspec.structs import replace

from actors.fleet import FleetSpec, Opening
from actors.fleet_messages import (
    AwaitSettled,
    GiveUpSeat,
    LookAgain,
    MoveSeat,
    NewLabels,
    SeatGone,
    SeatThere,
    SeatWanted,
    Settled,
    StopTaking,
    TakeSeat,
    WatchFleet,
)
from actors.holding import UNPREPARED
from actors.leases import (
    SessionBegan,
    SessionDoubted,
    SessionEnded,
    SessionRenewed,
    SessionTaken,
)
from actors.machines.fleet_view import FleetView
from actors.machines.placement import Demand, GiveUp, Member, Moves, may_work
from actors.machines.waves import Waves
from actors.outlook import Outlook
from actors.ports import BrokerError
from actors.setbacks import RETAKE_S, Setbacks
from actors.system import Actor, Address, EffectEnded, handles
from actors.tenure import NODE, SEAT, WORKER, Lease, Session, Watch, resource_of

PASS_S: Final = 0.002
PASS_S_A_SEAT: Final = 20e-6
"""Between two passes at least this: a pass over 3,000 seats takes some milliseconds, and their
rows come one by one while they are claimed."""

WATCH_AGAIN_S: Final = 1.0

log = structlog.get_logger(__name__)


class _Heard(Struct, frozen=True):
    lease: Lease


class _Look(Struct, frozen=True):
    """Time for a pass. `sweep`: the regular one, which renews the brake's allowance."""

    sweep: bool


class _NextWave(Struct, frozen=True):
    """There may be room for more seats that nobody has."""


class _End(Struct, frozen=True):
    """The tag of a write that ends a session."""

    node: str
    revision: int


class PlacementSupervisor(Actor):
    """Turns the view into moves."""

    def __init__(self, spec: FleetSpec, seats: Address, session: Session) -> None:
        super().__init__()
        self._spec = spec
        self._seats = seats
        self._session = session
        self._view = FleetView(spec.timing)
        self._outlook = Outlook(spec, self._view)
        self._watch: Watch | None = None
        self._seen = False
        self._leaving = False
        self._labels = spec.labels
        self._working: dict[str, None] = {}
        self._letting_go: dict[str, None] = {}
        self._coming: dict[str, None] = {}
        self._settler: Address | None = None
        self._passed = False
        self._setbacks = Setbacks(spec.timing.ttl_s)
        self._ending: dict[str, int] = {}
        self._unplaceable: tuple[str, ...] = ()
        self._may_shed = spec.shed_limit
        self._take_from = float("inf")
        self._due = float("inf")
        self._last_pass = float("-inf")
        self._openings: Sequence[Opening] = ()
        self._demands: dict[str, Demand] = {}
        self._waves = Waves()

    # -- hearing ------------------------------------------------------------------------

    @handles(WatchFleet)
    def on_watch(self, _: WatchFleet, sender: Address) -> None:
        self._open_watch()
        self.timer("sweep", self._spec.timing.sweep_s, _Look(sweep=True))

    def _open_watch(self) -> None:
        system, me = self.system, self.me

        def heard(lease: Lease) -> None:
            system.tell(me, _Heard(lease))

        async def watch() -> Watch:
            return await self._spec.store.watch(heard)

        self.effect(watch(), tag="watch")

    @handles(_Heard)
    def on_heard(self, heard: _Heard, sender: Address) -> None:
        now, lease = self.clock.monotonic(), heard.lease
        if not self._view.saw(lease, now):
            return
        self._setbacks.heard(lease)
        if not self._waves.idle:
            self._note_for_waves(lease, now)
        if not self._take_meant(lease, now) and self._bears_on_us(lease, now):
            self._soon(self._left_alone_s(lease, now))

    def _bears_on_us(self, lease: Lease, now: float) -> bool:
        """A seat that somebody took leaves nothing to do before the next sweep, and whoever
        leaves takes none: thousands of such rows come one by one."""
        if lease.resource.startswith(NODE):
            return True
        return not self._leaving and not self._view.holder(lease.resource, now)

    def _left_alone_s(self, lease: Lease, now: float) -> float:
        """A seat that is on its way to another node is nobody else's for a while."""
        handle = lease.resource.removeprefix(SEAT)
        if handle not in self._demands:
            return 0.0
        return max(self._setbacks.pause_s(handle, now), self._outlook.left_alone_s(lease, now))

    def _take_meant(self, lease: Lease, now: float) -> bool:
        """Whether this is a seat that was let go of for us, and that we take: at once, without a
        look at the whole, which stands in line behind the last one."""
        handle = lease.resource.removeprefix(SEAT)
        demand = self._demands.get(handle)
        meant = lease.released and lease.preferred == self._spec.node and self._seen
        if not meant or demand is None or lease.about.get(UNPREPARED) == self._spec.node:
            return False
        may_take = self._session.start_until > now and may_work(self._own(), demand)
        return may_take and self._take(handle, now)

    def _own(self) -> Member:
        return Member(self._spec.node, self._labels, not self._leaving, self._spec.roles)

    @handles(EffectEnded)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        if isinstance(ended.tag, _End):
            if self._ending.get(ended.tag.node) == ended.tag.revision:
                del self._ending[ended.tag.node]
            if ended.error is not None and not isinstance(ended.error, BrokerError):
                log.error("session_not_ended", node=ended.tag.node, error=repr(ended.error))
        elif ended.error is not None:
            log.warning("fleet_not_watched", error=str(ended.error))
            self.timer("watch", WATCH_AGAIN_S, WatchFleet())
        else:
            self._watch = ended.value  # type: ignore[assignment]
            # The rows that there were stand in this mailbox before this.
            self._seen = True
            self._soon(0.0)

    # -- from the session, the seats and operators ----------------------------------------

    @handles(SessionBegan)
    def on_began(self, _: SessionBegan, sender: Address) -> None:
        self._take_from = self.clock.monotonic() + self._spec.settle_s
        self._soon(self._spec.settle_s)

    @handles(SessionRenewed)
    def on_renewed(self, renewed: SessionRenewed, sender: Address) -> None:
        if renewed.again:
            self._soon(0.0)

    @handles(SessionDoubted)
    def on_doubted(self, _: SessionDoubted, sender: Address) -> None:
        """The session itself says what may be done; this asks it at each pass."""

    @handles(SessionEnded)
    def on_session_ended(self, _: SessionEnded, sender: Address) -> None:
        self._take_from = float("inf")

    @handles(SessionTaken)
    def on_taken(self, taken: SessionTaken, sender: Address) -> None:
        self._spec.tell("id_taken", {"owner": taken.lease.owner})

    @handles(SeatGone)
    def on_gone(self, gone: SeatGone, sender: Address) -> None:
        for known in (self._working, self._letting_go, self._coming):
            known.pop(gone.handle, None)
        now, row = self.clock.monotonic(), self._view.row(resource_of(gone.handle))
        self._setbacks.met(gone, now)
        if not gone.voluntary or row is None:
            self._soon(RETAKE_S)
        elif row.released:  # else its row is heard soon, and says whom it is for
            self._soon(self._left_alone_s(row, now))
        self._report_settled()

    @handles(SeatThere)
    def on_there(self, there: SeatThere, sender: Address) -> None:
        self._coming.pop(there.handle, None)
        self._report_settled()

    @handles(AwaitSettled)
    def on_await_settled(self, _: AwaitSettled, sender: Address) -> None:
        self._settler = sender
        self._report_settled()

    def _report_settled(self) -> None:
        if self._settler is not None and self._passed and not self._coming:
            self.tell(self._settler, Settled(len(self._working)))
            self._settler = None

    @handles(StopTaking)
    def on_stop_taking(self, wanted: StopTaking, sender: Address) -> None:
        self._leaving = wanted.on
        self._let_go_of(self._coming if wanted.on else ())
        self._soon(0.0)

    @handles(NewLabels)
    def on_labels(self, changed: NewLabels, sender: Address) -> None:
        self._labels = changed.labels
        self._soon(0.0)

    @handles(LookAgain)
    def on_look_again(self, _: LookAgain, sender: Address) -> None:
        self._soon(0.0)

    @handles(MoveSeat)
    def on_move(self, wanted: MoveSeat, sender: Address) -> None:
        now, working, leaving = self.clock.monotonic(), self._working, self._letting_go
        moved = self._outlook.moved(wanted, working, leaving, now)
        if not moved.refused:
            self._give_up(GiveUpSeat(wanted.handle, "moved", wanted.to, ordered=True))
        self.tell(sender, moved)

    # -- a node that leaves ---------------------------------------------------------------

    def _note_for_waves(self, lease: Lease, now: float) -> None:
        handle = lease.resource.removeprefix(SEAT)
        if lease.released:
            self._waves.released(handle, now)
        elif lease.node != self._spec.node:
            self._waves.taken(handle, now)
            self._let_go_more(now)

    def _let_go_more(self, now: float) -> None:
        for seat in self._waves.due(now):
            self._give_up(GiveUpSeat(seat.handle, seat.reason, seat.to))
        if (at := self._waves.next_at()) < float("inf"):
            self.timer("wave", max(0.001, at - now), _NextWave())

    def _let_go_of(self, seats: Iterable[str]) -> None:
        """It cannot be told to whom: nobody is waited for."""
        for handle in [handle for handle in seats if handle not in self._letting_go]:
            self._give_up(GiveUpSeat(handle, "drain"))

    @handles(_NextWave)
    def on_next_wave(self, _: _NextWave, sender: Address) -> None:
        self._let_go_more(self.clock.monotonic())

    @handles(SeatWanted)
    def on_wanted(self, wanted: SeatWanted, sender: Address) -> None:
        seat = self._waves.at_once(wanted.handle, self.clock.monotonic())
        if seat is not None:
            self._give_up(GiveUpSeat(seat.handle, seat.reason, seat.to))

    # -- passes ---------------------------------------------------------------------------

    def _soon(self, after_s: float) -> None:
        """A pass in so many seconds, unless one is due before; never two in a breath."""
        now = self.clock.monotonic()
        due = max(now + after_s, self._last_pass + PASS_S + PASS_S_A_SEAT * len(self._openings))
        if due < self._due:
            self._due = due
            self.timer("look", max(0.0, due - now), _Look(sweep=False))

    @handles(_Look)
    def on_look(self, look: _Look, sender: Address) -> None:
        if look.sweep:
            self._may_shed = self._spec.shed_limit
            self.timer("sweep", self._spec.timing.sweep_s, _Look(sweep=True))
        now = self.clock.monotonic()
        self._last_pass, self._due = now, float("inf")
        if now < self._take_from < float("inf"):  # this look was not the one that it waits for
            self._soon(self._take_from - now)
        if self._seen and self._session.valid_until > now:
            self._pass(now)
        elif self._leaving:
            self._let_go_of(self._working)
        if (silence := self._view.next_silence()) < float("inf"):
            self._soon(max(0.0, silence - now) if silence > now else self._spec.timing.sweep_s)

    def _pass(self, now: float) -> None:
        self._end_the_silent(now)
        openings = self._spec.seats()
        if openings is None:  # unknown is never absent
            log.warning("placement_skipped", reason="the company cannot be read")
            self._skip()
            return
        if openings is not self._openings:
            self._openings = openings
            self._demands = {opening.handle: opening.demand for opening in openings}
        board = self._outlook.board(openings, self._own(), self._working, now)
        if self._outlook.changes_at < float("inf"):
            self._soon(self._outlook.changes_at - now)
        if (moves := self._outlook.decided(board)) is None:
            self._skip()
            return
        self._say_unplaceable(moves)
        self._carry_out(moves, openings, now)

    def _skip(self) -> None:
        self._let_go_of(self._working if self._leaving else ())
        self._passed = True  # a start waits for a look, not for a good one
        self._report_settled()

    def _end_the_silent(self, now: float) -> None:
        for lease in self._view.to_end(now):
            if lease.node == self._spec.node or lease.node in self._ending:
                continue
            log.warning("session_silent", node=lease.node, owner=lease.owner)
            self._ending[lease.node] = lease.revision
            ended = replace(lease, released=True)
            self.effect(self._spec.store.write(ended), tag=_End(lease.node, lease.revision))

    def _say_unplaceable(self, moves: Moves) -> None:
        if moves.unplaceable != self._unplaceable and not self._leaving:
            self._unplaceable = moves.unplaceable
            if moves.unplaceable:
                log.warning("seats_unplaceable", seats=moves.unplaceable)
            self._spec.tell("seats_unplaceable", {"handles": moves.unplaceable})

    def _carry_out(self, moves: Moves, openings: Sequence[Opening], now: float) -> None:
        paced: list[GiveUp] = []
        for give_up in moves.give_up:
            if give_up.handle not in self._working or give_up.handle in self._letting_go:
                continue
            if give_up.reason == "balance":
                if self._may_shed <= 0:
                    continue
                self._may_shed -= 1
            elif give_up.to and not give_up.handle.startswith(WORKER):
                paced.append(give_up)
                continue
            self._give_up(GiveUpSeat(give_up.handle, give_up.reason, give_up.to))
        self._waves.plan(paced)
        self._let_go_more(now)
        if self._leaving or self._session.start_until <= now:
            return
        if now < self._take_from:  # of what nobody else is to have nothing is to be seen yet
            for handle in filter(self._is_sent_to_us, moves.take):
                self._take(handle, now)
            return
        for handle in [*moves.take, *self._outlook.unadopted(openings, self._working, now)]:
            self._take(handle, now)
        self._passed = True
        self._report_settled()

    def _is_sent_to_us(self, handle: str) -> bool:
        row = self._view.row(resource_of(handle))
        return row is not None and row.released and row.preferred == self._spec.node

    def _take(self, handle: str, now: float) -> bool:
        """Whether it is being taken; not if it is already, or was in vain a moment ago."""
        if handle in self._working or self._setbacks.pause_s(handle, now) > 0:
            return False
        resource = resource_of(handle)
        row = self._view.row(resource)
        if self._setbacks.outrun(resource, row):
            return False
        self._working[handle] = self._coming[handle] = None
        self.tell(self._seats, TakeSeat(handle, row, self._view.died(resource)))
        return True

    def _give_up(self, wanted: GiveUpSeat) -> None:
        self._letting_go[wanted.handle] = None
        self.tell(self._seats, wanted)
