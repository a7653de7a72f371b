"""The seat supervisor: parent of this node's seats, from the claim to the release of each.

A seat is established in order - the row is ours, what it needs is there, its holds are taken, and
its mailboxes are attached last - and let go of in the mirror of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from actors.duty import DutyActor, DutyPlan, DutySpec
from actors.failpoints import reached
from actors.fleet import FleetSpec
from actors.fleet_messages import (
    DrainSeats,
    GiveUpSeat,
    SeatGone,
    SeatsDrained,
    SeatThere,
    SeatWanted,
    TakeSeat,
    WhereIsSeat,
)
from actors.holding import Bound, Holding, Rest, Tag, claim, release
from actors.intake import Intake
from actors.leases import (
    SessionBegan,
    SessionDoubted,
    SessionEnded,
    SessionRenewed,
    SessionTaken,
)
from actors.machines import handoff
from actors.messages import (
    Begun,
    CutShort,
    Doubt,
    Drain,
    Drained,
    Establish,
    Established,
    FencedOut,
    Forsake,
    Forsaken,
    LookAround,
    MailWaits,
)
from actors.ports import BrokerError
from actors.seat import SeatActor, SeatSpec, seat_plan
from actors.system import Actor, Address, ChildFailed, EffectEnded, Supervision, handles
from actors.tenure import WATCHED_S, Fence, Lease, Lost, Session, Tenure

CUT_GRACE_S: Final = 3.0
"""How long a seat whose turn was cut may take to hand its mail back before it is undead."""

PACED: Final = 0.75
"""The part of a drain's bound in which seats are let go of as fast as others take them, some 150 a
second. What is left then is let go of at once, which is twice as fast (`benchmarks/fleet.py`)."""

FOR_EVER: Final = Supervision(on_failure="restart", most=10**9, within_s=3600.0)

log = structlog.get_logger(__name__)


class SeatSupervisor(Actor):
    """Steps a hand-off machine for each seat."""

    def __init__(self, spec: FleetSpec, gateway: Address, session: Session) -> None:
        super().__init__()
        self._spec = spec
        self._gateway = gateway
        self._session = session
        self._seats: dict[str, Holding] = {}
        self._by_address: dict[Address, str] = {}
        self._intake = Intake()
        self._placement: Address | None = None
        self._doubted = False
        self._number = 0
        self._drainer: Address | None = None
        self._cut_at = float("inf")
        self._cut: list[tuple[str, str]] = []

    # -- from placement -----------------------------------------------------------------

    @handles(TakeSeat)
    def on_take(self, wanted: TakeSeat, sender: Address) -> None:
        self._placement = sender
        self._intake.put(wanted)
        self._take_more()

    def _take_more(self) -> None:
        while (wanted := self._intake.next()) is not None:
            if wanted.handle in self._seats or self._drainer is not None:
                self._say_gone(wanted.handle, "not wanted any more", voluntary=True)
                continue
            self._number += 1
            self._intake.began(wanted.handle, self.clock.monotonic())
            self._seats[wanted.handle] = Holding(wanted.handle, self._number, wanted.row)
            self._step(wanted.handle, handoff.Take(wanted.row, wanted.died))

    @handles(GiveUpSeat)
    def on_give_up(self, wanted: GiveUpSeat, sender: Address) -> None:
        if self._intake.withdraw(wanted.handle):
            self._say_gone(wanted.handle, "not wanted any more", voluntary=True)
        self._step(wanted.handle, handoff.GiveUp(wanted.reason, wanted.to, wanted.ordered))

    @handles(WhereIsSeat, urgent=True)
    def on_where(self, wanted: WhereIsSeat, sender: Address) -> None:
        seat = self._seats.get(wanted.handle)
        self.tell(sender, seat.address if seat else None)

    # -- from the session ---------------------------------------------------------------

    @handles(SessionBegan, urgent=True)
    def on_began(self, _: SessionBegan, sender: Address) -> None:
        self._doubt(on=False)

    @handles(SessionRenewed, urgent=True)
    def on_renewed(self, renewed: SessionRenewed, sender: Address) -> None:
        if renewed.again:
            self._doubt(on=False)
            self.tell(self._gateway, LookAround())
        for handle in list(self._seats):
            if self._seats[handle].machine.state in _BEATEN:
                self._step(handle, handoff.Beat())

    @handles(SessionDoubted, urgent=True)
    def on_doubted(self, _: SessionDoubted, sender: Address) -> None:
        self._doubt(on=True)

    def _doubt(self, *, on: bool) -> None:
        if self._doubted != on:
            self._doubted = on
            for seat in self._seats.values():
                seat.doubted = seat.doubted or on
            for address in self._by_address:
                self.tell(address, Doubt(on))

    @handles(SessionTaken)
    def on_taken(self, _: SessionTaken, sender: Address) -> None:
        """Nothing is held then."""

    @handles(SessionEnded, urgent=True)
    def on_session_ended(self, ended: SessionEnded, sender: Address) -> None:
        self._doubted = False
        for wanted in self._intake.clear():
            self._say_gone(wanted.handle, ended.reason, voluntary=False)
        for handle in list(self._seats):
            self._step(handle, handoff.Fence(ended.reason))

    # -- from the seats -----------------------------------------------------------------

    @handles(Established)
    def on_established(self, established: Established, sender: Address) -> None:
        seat = self._seats.get(established.name)
        if seat is None or seat.address != sender:
            return
        self._intake.there(seat.handle, self.clock.monotonic())
        if seat.machine.state is handoff.State.ESTABLISHING:
            self._step(seat.handle, handoff.Established())
            self._spec.tell("seat_established", {"handle": seat.handle})
            if self._placement is not None:
                self.tell(self._placement, SeatThere(seat.handle))
        self._take_more()

    @handles(Drained)
    def on_drained(self, drained: Drained, sender: Address) -> None:
        if sender in self._by_address:
            self.cancel_timer(f"bound {drained.name}")
            self._cut += [(drained.name, key) for key in drained.cut]
            self._step(drained.name, handoff.Empty())

    @handles(Bound)
    def on_bound(self, bound: Bound, sender: Address) -> None:
        seat = self._seats.get(bound.handle)
        if seat is None or seat.address is None:
            return
        if bound.given_up:
            self._step(bound.handle, handoff.NotEmpty())
            self._report_drained()
        else:
            self.tell(seat.address, CutShort())
            self._bound(bound.handle, CUT_GRACE_S, given_up=True)

    @handles(FencedOut, urgent=True)
    def on_fenced_out(self, fenced: FencedOut, sender: Address) -> None:
        if sender in self._by_address:
            self._step(fenced.name, handoff.Fence(fenced.reason))

    @handles(MailWaits)
    def on_mail_waits(self, waits: MailWaits, sender: Address) -> None:
        handle = self._by_address.get(waits.seat)
        if handle is not None and self._placement is not None:
            self.tell(self._placement, SeatWanted(handle))

    @handles(ChildFailed)
    def on_child_failed(self, failed: ChildFailed, sender: Address) -> None:
        """It begins again by itself, with its plan."""
        log.error("consumer_failed", name=failed.name, reason=failed.reason, action=failed.action)

    @handles(Begun)
    def on_begun(self, begun: Begun, sender: Address) -> None:
        """A doubt outlives an incarnation: it is a hold of the plan."""

    @handles(Forsaken)
    def on_forsaken(self, forsaken: Forsaken, sender: Address) -> None:
        handle = self._by_address.get(forsaken.owner)
        if handle is not None:
            self._step(handle, handoff.Forsaken())

    # -- the drain ------------------------------------------------------------------------

    @handles(DrainSeats)
    def on_drain(self, wanted: DrainSeats, sender: Address) -> None:
        """Each is free for others as soon as its own turn has ended; those that have none are
        given up by placement, at the pace of who takes them."""
        self._drainer = sender
        self._cut_at = self.clock.monotonic() + wanted.bound_s
        self._intake.clear()
        for handle, seat in list(self._seats.items()):
            if seat.machine.state is handoff.State.LEAVING:
                self._bound(handle, wanted.bound_s, given_up=False)
            elif seat.machine.state is not handoff.State.HELD:
                self._step(handle, handoff.GiveUp("drain"))
        self.timer("rest", wanted.bound_s * PACED, Rest())
        self._report_drained()

    @handles(Rest)
    def on_rest(self, _: Rest, sender: Address) -> None:
        for handle in list(self._seats):
            self._step(handle, handoff.GiveUp("drain"))

    def _report_drained(self) -> None:
        if self._drainer is not None and all(seat.stuck for seat in self._seats.values()):
            self.tell(self._drainer, SeatsDrained(tuple(self._cut), tuple(self._seats)))

    # -- the machines -------------------------------------------------------------------

    def _step(self, handle: str, given: handoff.Input) -> None:
        seat = self._seats.get(handle)
        if seat is not None:
            for effect in seat.machine.step(given):
                self._carry_out(seat, effect)

    def _carry_out(self, seat: Holding, effect: handoff.Effect) -> None:
        match effect:
            case handoff.WriteClaim(row=row):
                spec, session = self._spec, self._session.epoch
                lease = claim(seat.handle, row, owner=spec.owner, node=spec.node, session=session)
                self.effect(spec.store.write(lease), tag=seat.tag("claim"))
            case handoff.Establish(row=row, reclaim=reclaim):
                self._prepare(seat, row, reclaim=reclaim)
            case handoff.Drain():
                self._drain(seat)
            case handoff.Forsake():
                self._forsake(seat)
            case handoff.WriteRelease():
                reached("before_release")
                row = release(effect, mail_out_s=seat.mail_out_s(effect, self.clock.monotonic()))
                self.effect(self._spec.store.write(row), tag=seat.tag("release"))
            case handoff.Gone(voluntary=voluntary, reason=reason):
                self._gone(seat, reason, voluntary=voluntary)
            case handoff.Alarm(beats=beats):
                log.critical("seat_undead", seat=seat.handle, renewals=beats)
                self._spec.tell("seat_undead", {"handle": seat.handle, "renewals": beats})

    def _prepare(self, seat: Holding, row: Lease, *, reclaim: bool) -> None:
        fence = Fence(row.resource, row.epoch, row.revision)
        seat.tenure = Tenure(fence, self._session, row.session, seat.watch_s)
        kind = "prepare_reclaim" if reclaim else "prepare"
        self.effect(self._spec.prepare(seat.handle), tag=seat.tag(kind))

    def _establish(self, seat: Holding, spec: SeatSpec | DutySpec, *, reclaim: bool) -> None:
        assert seat.tenure is not None
        if reclaim:
            seat.watched_until = self.clock.monotonic() + seat.tenure.watch_s
        if isinstance(spec, DutySpec):
            plan = DutyPlan(spec)
            address = self.spawn(DutyActor, plan, name=spec.name, supervision=FOR_EVER)
        else:
            label = f"seat {seat.handle}"
            address = self.spawn(
                SeatActor, seat_plan(spec), self._gateway, name=label, supervision=FOR_EVER
            )
        seat.address = address
        self._by_address[address] = seat.handle
        if self._doubted:
            self.tell(address, Doubt(on=True))
        self.tell(address, Establish(seat.tenure.fence.epoch, reclaim, seat.tenure))

    def _drain(self, seat: Holding) -> None:
        if seat.address is None:  # nothing of it was made
            self._step(seat.handle, handoff.Empty())
            return
        self.tell(seat.address, Drain())
        if seat.machine.state is handoff.State.UNDEAD:
            self.tell(seat.address, CutShort())
        elif self._drainer is not None:
            left_s = max(0.0, self._cut_at - self.clock.monotonic())
            self._bound(seat.handle, left_s, given_up=False)

    def _bound(self, handle: str, after_s: float, *, given_up: bool) -> None:
        self.timer(f"bound {handle}", after_s, Bound(handle, given_up))

    def _forsake(self, seat: Holding) -> None:
        """The gate shuts first; then what it would have said is taken back, and it ends."""
        assert seat.tenure is not None
        seat.tenure.ended = True
        self.cancel_timer(f"bound {seat.handle}")
        if seat.address is None:
            self._step(seat.handle, handoff.Forsaken())
            return
        self.stop(seat.address)
        self.tell(self._gateway, Forsake(seat.address))

    def _gone(self, seat: Holding, reason: str, *, voluntary: bool) -> None:
        if seat.tenure is not None:
            seat.tenure.ended = True
        self.cancel_timer(f"bound {seat.handle}")
        del self._seats[seat.handle]
        self._intake.gone(seat.handle)
        if seat.address is not None:
            del self._by_address[seat.address]
            if voluntary:
                self.stop(seat.address)
        if seat.machine.was_held:
            what = "seat_released" if voluntary else "seat_lost"
            log.info(what, seat=seat.handle, reason=reason)
            self._spec.tell(what, {"handle": seat.handle, "reason": reason})
        self._say_gone(seat.handle, reason, voluntary=voluntary, outrun=seat.outrun)
        self._take_more()
        self._report_drained()

    def _say_gone(self, handle: str, reason: str, *, voluntary: bool, outrun: int = -1) -> None:
        if self._placement is not None:
            self.tell(self._placement, SeatGone(handle, reason, voluntary, outrun))

    # -- answers --------------------------------------------------------------------------

    @handles(EffectEnded, urgent=True)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        tag: Tag = ended.tag  # type: ignore[assignment]
        seat = self._seats.get(tag.handle)
        if seat is not None and seat.number == tag.number:
            _ENDS[tag.kind](self, seat, ended)

    def _on_claimed(self, seat: Holding, ended: EffectEnded) -> None:
        if isinstance(ended.value, Lease):
            self._step(seat.handle, handoff.Claimed(ended.value))
            return
        if isinstance(ended.error, Lost):
            seat.outrun = seat.claimed_on
        else:
            log.warning("seat_not_claimed", seat=seat.handle, error=str(ended.error))
        self._step(seat.handle, handoff.NotClaimed())

    def _on_prepared(self, seat: Holding, ended: EffectEnded) -> None:
        if seat.machine.state is not handoff.State.ESTABLISHING:
            return  # it was given up or fenced meanwhile
        spec = ended.value
        if isinstance(spec, SeatSpec | DutySpec):
            told = isinstance(spec, SeatSpec) and spec.reclaim
            if told and seat.tenure is not None:
                seat.tenure.watch_s = WATCHED_S
            reclaim = told or _tag_of(ended).kind == "prepare_reclaim"
            self._establish(seat, spec, reclaim=reclaim)
            return
        known = isinstance(ended.error, BrokerError)
        log.error("seat_not_prepared", seat=seat.handle, error=repr(ended.error), known=known)
        self._step(seat.handle, handoff.NotEstablished())

    def _on_released(self, seat: Holding, ended: EffectEnded) -> None:
        reached("after_release")
        # In a drain the row goes with the session, whatever became of this write.
        going = self._drainer is not None
        decided = going or ended.error is None or isinstance(ended.error, Lost)
        if isinstance(ended.value, Lease) and seat.machine.row is not None:
            seat.outrun = seat.machine.row.revision
        self._step(seat.handle, handoff.Released() if decided else handoff.NotReleased())


_BEATEN: Final = (handoff.State.UNDEAD, handoff.State.RELEASING)


def _tag_of(ended: EffectEnded) -> Tag:
    assert isinstance(ended.tag, Tag)
    return ended.tag


_ENDS: Final[dict[str, Callable[[SeatSupervisor, Holding, EffectEnded], None]]] = {
    "claim": SeatSupervisor._on_claimed,
    "prepare": SeatSupervisor._on_prepared,
    "prepare_reclaim": SeatSupervisor._on_prepared,
    "release": SeatSupervisor._on_released,
}
