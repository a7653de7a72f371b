"""The placement supervisor: hears the fleet's rows, and decides what this node takes and gives up.

It looks at the whole each sweep, and soon after anything it hears: a seat that nobody has is taken
at once, sessions that fell silent are ended, and giving up for the sake of balance is braked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
from msgspec import Struct
from msgspec.structs import replace

from actors.fleet import FleetSpec, Opening, member_of
from actors.fleet_messages import (
    AwaitSettled,
    GiveUpSeat,
    LookAgain,
    Moved,
    MoveSeat,
    NewLabels,
    SeatGone,
    SeatThere,
    Settled,
    StopTaking,
    TakeSeat,
    WatchFleet,
)
from actors.holding import ORDERED, UNPREPARED
from actors.leases import (
    SessionBegan,
    SessionDoubted,
    SessionEnded,
    SessionRenewed,
    SessionTaken,
)
from actors.machines.fleet_view import FleetView, Standing
from actors.machines.placement import Board, Member, Moves, Place, may_work
from actors.ports import BrokerError
from actors.system import Actor, Address, EffectEnded, handles
from actors.tenure import NODE, Lease, Session, Watch, resource_of

PASS_S: Final = 0.002
PASS_S_A_SEAT: Final = 20e-6
"""Between two passes at least this: a pass over 3,000 seats takes some milliseconds, and their
rows come one by one while they are claimed."""

STAND_BACK_S_A_SEAT: Final = 0.02
"""Of a node that died with a thousand seats each of its heirs needs a while for its own share."""

WATCH_AGAIN_S: Final = 1.0

RETAKE_S: Final = 0.1
"""How long a seat that was claimed in vain is left alone: by then its new row has been heard."""

log = structlog.get_logger(__name__)


class _Heard(Struct, frozen=True):
    lease: Lease


class _Look(Struct, frozen=True):
    """Time for a pass. `sweep`: the regular one, which renews the brake's allowance."""

    sweep: bool


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
        self._watch: Watch | None = None
        self._seen = False
        self._leaving = False
        self._labels = spec.labels
        self._working: dict[str, None] = {}
        self._letting_go: dict[str, None] = {}
        self._coming: dict[str, None] = {}
        self._settler: Address | None = None
        self._passed = False
        self._not_before: dict[str, float] = {}
        self._free_since: dict[str, float] = {}
        self._ending: dict[str, int] = {}
        self._unplaceable: tuple[str, ...] = ()
        self._may_shed = spec.shed_limit
        self._take_from = float("inf")
        self._due = float("inf")
        self._last_pass = float("-inf")
        self._openings = 0

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
        if self._view.saw(lease, now) and self._bears_on_us(lease, now):
            self._soon(0.0)

    def _bears_on_us(self, lease: Lease, now: float) -> bool:
        """A seat that somebody took leaves nothing to do before the next sweep, and whoever
        leaves takes none: thousands of such rows come one by one."""
        if lease.resource.startswith(NODE):
            return True
        return not self._leaving and not self._view.holder(lease.resource, now)

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
        self._working.pop(gone.handle, None)
        self._letting_go.pop(gone.handle, None)
        self._coming.pop(gone.handle, None)
        pause_s = self._spec.timing.ttl_s if gone.reason in _STAND_BACK else RETAKE_S
        self._not_before[gone.handle] = self.clock.monotonic() + pause_s
        self._soon(RETAKE_S)
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
        refused = self._refused(wanted)
        if not refused:
            self._give_up(GiveUpSeat(wanted.handle, "moved", wanted.to, ordered=True))
        self.tell(sender, Moved(refused))

    def _refused(self, wanted: MoveSeat) -> str:
        now = self.clock.monotonic()
        holder = self._view.holder(resource_of(wanted.handle), now)
        if holder != self._spec.node or wanted.handle not in self._working:
            return f"{wanted.handle} is not worked here, but on {holder or 'no node'}"
        if wanted.to == self._spec.node:
            return f"{wanted.handle} is worked on {wanted.to} already"
        live = self._view.live(now)
        there = next((lease for lease in live if lease.node == wanted.to), None)
        if there is None:
            known = ", ".join(lease.node for lease in live)
            return f"no node {wanted.to} is in the fleet; there are: {known}"
        demand = next(
            (o.demand for o in self._spec.seats() or () if o.handle == wanted.handle), None
        )
        able = demand is not None and may_work(member_of(there), demand)
        return "" if able else f"{wanted.to} may not work {wanted.handle}"

    # -- passes ---------------------------------------------------------------------------

    def _soon(self, after_s: float) -> None:
        """A pass in so many seconds, unless one is due before; never two in a breath."""
        now = self.clock.monotonic()
        breath = PASS_S + PASS_S_A_SEAT * self._openings
        due = max(now + after_s, self._last_pass + breath)
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
        if (silence := self._view.next_silence()) < float("inf"):
            self._soon(max(0.0, silence - now) if silence > now else self._spec.timing.sweep_s)

    def _pass(self, now: float) -> None:
        self._end_the_silent(now)
        openings = self._spec.seats()
        if openings is None:  # unknown is never absent
            log.warning("placement_skipped", reason="the company cannot be read")
            return
        self._openings = len(openings)
        board = self._board(openings, now)
        moves = self._spec.strategy(board)
        self._say_unplaceable(moves)
        self._carry_out(moves, openings, now)

    def _end_the_silent(self, now: float) -> None:
        for lease in self._view.to_end(now):
            if lease.node == self._spec.node or lease.node in self._ending:
                continue
            log.warning("session_silent", node=lease.node, owner=lease.owner)
            self._ending[lease.node] = lease.revision
            ended = replace(lease, released=True)
            self.effect(self._spec.store.write(ended), tag=_End(lease.node, lease.revision))

    def _board(self, openings: Sequence[Opening], now: float) -> Board:
        spec, view = self._spec, self._view
        others = [lease for lease in view.live(now) if lease.node != spec.node]
        own = Member(spec.node, self._labels, not self._leaving, spec.roles)
        members = [own, *(member_of(lease) for lease in others)]
        members.sort(key=lambda member: member.id)
        places = [self._place(opening, now) for opening in openings]
        wanted = {opening.handle for opening in openings}
        gone = [handle for handle in self._working if handle not in wanted]
        return Board(spec.node, members, places, gone)

    def _place(self, opening: Opening, now: float) -> Place:
        resource = resource_of(opening.handle)
        row = self._view.row(resource)
        holder = self._view.holder(resource, now)
        if holder:
            self._free_since.pop(opening.handle, None)
            waits = False
        else:
            since = self._free_since.setdefault(opening.handle, now)
            stand_back_s = self._spec.timing.stand_back_s + STAND_BACK_S_A_SEAT * len(
                self._free_since
            )
            waits = now - since >= stand_back_s
            if not waits:
                self._soon(since + stand_back_s - now)
        return Place(
            handle=opening.handle,
            demand=opening.demand,
            holder=holder,
            preferred=row.preferred if row else "",
            ordered=row is not None and ORDERED in row.about,
            waits=waits,
            avoid=row.about.get(UNPREPARED, "") if row else "",
        )

    def _say_unplaceable(self, moves: Moves) -> None:
        if moves.unplaceable != self._unplaceable and not self._leaving:
            self._unplaceable = moves.unplaceable
            if moves.unplaceable:
                log.warning("seats_unplaceable", seats=moves.unplaceable)
            self._spec.tell("seats_unplaceable", {"handles": moves.unplaceable})

    def _carry_out(self, moves: Moves, openings: Sequence[Opening], now: float) -> None:
        for give_up in moves.give_up:
            if give_up.handle not in self._working or give_up.handle in self._letting_go:
                continue
            if give_up.reason == "balance":
                if self._may_shed <= 0:
                    continue
                self._may_shed -= 1
            self._give_up(GiveUpSeat(give_up.handle, give_up.reason, give_up.to))
        if self._leaving or self._session.start_until <= now:
            return
        if now < self._take_from:  # of what nobody else is to have nothing is to be seen yet
            for handle in filter(self._is_sent_to_us, moves.take):
                self._take(handle, now)
            return
        for handle in [*moves.take, *self._unadopted(openings, now)]:
            self._take(handle, now)
        self._passed = True
        self._report_settled()

    def _is_sent_to_us(self, handle: str) -> bool:
        row = self._view.row(resource_of(handle))
        return row is not None and row.released and row.preferred == self._spec.node

    def _unadopted(self, openings: Sequence[Opening], now: float) -> list[str]:
        """Ours by their rows, and nobody here works them: claims whose answer was lost."""
        mine = self._spec.node
        handles = (opening.handle for opening in openings)
        return [
            handle
            for handle in handles
            if handle not in self._working
            and self._view.standing(resource_of(handle), now) is Standing.HELD
            and self._view.holder(resource_of(handle), now) == mine
        ]

    def _take(self, handle: str, now: float) -> None:
        if handle in self._working or self._not_before.get(handle, now) > now:
            return
        self._working[handle] = self._coming[handle] = None
        resource = resource_of(handle)
        row = self._view.row(resource)
        self.tell(self._seats, TakeSeat(handle, row, self._view.died(resource)))

    def _give_up(self, wanted: GiveUpSeat) -> None:
        self._letting_go[wanted.handle] = None
        self.tell(self._seats, wanted)


_STAND_BACK: Final = frozenset({"it could not be established", "the completion was refused"})
"""Reasons after which a seat is left alone for a TTL: trying at once would end the same."""
