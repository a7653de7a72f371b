"""The root of a node's actors: start order, restarts, drain.

Start: the gateway, then the seats - those given, and those that this node takes of its fleet's -
then routing, so that the seats pull before the first delivery is routed. Drain goes the other way:
routing and seats take nothing new, running turns end within the bound, all mail in hand goes
back, the broker has heard what became of the rest, and the session is given up last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import structlog
from msgspec import Struct

from actors.fleet import FleetSpec
from actors.fleet_messages import SeatsDrained, Settled
from actors.gateway import Gateway
from actors.leases import (
    SessionBegan,
    SessionDoubted,
    SessionEnded,
    SessionLeft,
    SessionRenewed,
    SessionTaken,
)
from actors.mail import MailActor
from actors.membership import HANDOFFS, REBALANCE, Membership
from actors.messages import (
    Begun,
    ClearLife,
    Consume,
    CutShort,
    Drain,
    Drained,
    DrainNode,
    Establish,
    Established,
    Flush,
    Flushed,
    LifeCleared,
    NodeDrained,
    NodeStarted,
    NotStarted,
    Reconsider,
    Relabel,
    StandAside,
    StartNode,
    Whereabouts,
)
from actors.plan import Plan, plan_of
from actors.ports import Broker, Consumed
from actors.seat import SeatActor, SeatSpec, seat_plan
from actors.system import Actor, Address, ChildFailed, Supervision, Terminated, handles

ESTABLISH_LIMIT: Final = 16
"""Seats that attach at the same time: what a broker takes without queueing."""

CUT_GRACE_S: Final = 3.0
"""How long a cut consumer may take to hand its mail back before it is given up."""

GATEWAY: Final = "gateway"
ROUTER: Final = "router"
INBOUND: Final = "inbound"
FLEET: Final = "fleet"

ESCALATE: Final = Supervision(on_failure="escalate")
"""Of the gateway: what is in flight is known to it alone, so without it the node ends, and
what it held is reclaimed by the next start."""

FOR_EVER: Final = Supervision(on_failure="restart", most=10**9, within_s=3600.0)
"""Of a consumer: backoff doubling to 30 s, and no end to it."""

log = structlog.get_logger(__name__)


class NodeSpec(Struct, frozen=True):
    """What the root starts. `epoch` is the fence that this process attaches the given `seats`
    under, which are nobody else's; 0 is shared. A `fleet` brings seats of its own, each as long as
    this node holds it. Without a `router` nothing is routed here."""

    broker: Broker
    seats: Sequence[SeatSpec] = ()
    router: Consumed | None = None
    epoch: int = 1
    reclaim_router: bool = False
    fleet: FleetSpec | None = None


class _BoundReached(Struct, frozen=True):
    """The drain's bound, then the grace of those that were cut."""

    given_up: bool


class NodeActor(Actor):
    """Parent of the gateway, of every seat and of the router."""

    def __init__(self, spec: NodeSpec) -> None:
        super().__init__()
        self._spec = spec
        self._gateway = self.spawn(Gateway, spec.broker, name=GATEWAY, supervision=ESCALATE)
        self._children: dict[str, Address] = {}
        self._plans: dict[Address, Plan] = {}
        self._broken: dict[str, None] = {}
        self._leaving = False
        self._reclaim: dict[str, bool] = {}
        self._to_establish: deque[str] = deque()
        self._establishing: dict[str, None] = {}
        self._starter: Address | None = None
        self._drainer: Address | None = None
        self._draining: dict[str, None] = {}
        self._flushed: bool | None = None
        self._cut: list[tuple[str, str]] = []
        self._stuck: list[str] = []
        self._fleet = None if spec.fleet is None else Membership(self, spec.fleet, self._gateway)
        self._session_left = self._fleet is None
        self._left_asked = False

    # -- start ------------------------------------------------------------------------

    @handles(StartNode)
    def on_start(self, _: StartNode, sender: Address) -> None:
        self._starter = sender
        for seat in self._spec.seats:
            name = seat.handle
            self._spawn(name, SeatActor, seat_plan(seat), f"seat {name}")
            self._reclaim[name] = seat.reclaim
        if self._spec.router is not None:
            self._spawn(ROUTER, MailActor, plan_of(ROUTER, {INBOUND: self._spec.router}), ROUTER)
            self._reclaim[ROUTER] = self._spec.reclaim_router
        self._to_establish.extend(seat.handle for seat in self._spec.seats)
        self._establish_more()

    def _establish_more(self) -> None:
        """Seats first; routing once the last of them pulls."""
        while self._to_establish and len(self._establishing) < ESTABLISH_LIMIT:
            self._establish(self._to_establish.popleft())
        if self._establishing or not self._starter:
            return
        if self._fleet is not None and not self._fleet.settled and not self._leaving:
            self._fleet.begin(self)
        elif ROUTER in self._reclaim and not self._leaving:
            self._establish(ROUTER)
        else:
            held = self._fleet.held if self._fleet is not None else 0
            self._answer_start(NodeStarted(len(self._spec.seats) + held))

    def _answer_start(self, answer: NodeStarted | NotStarted) -> None:
        if self._starter:
            self.tell(self._starter, answer)
            self._starter = None

    def _establish(self, name: str) -> None:
        self._establishing[name] = None
        reclaim = self._reclaim.pop(name, False)
        # Routing is shared by all nodes of a fleet: it has no owner.
        shared = name == ROUTER and self._fleet is not None
        self.tell(self._children[name], Establish(0 if shared else self._spec.epoch, reclaim))

    @handles(Established)
    def on_established(self, established: Established, sender: Address) -> None:
        self._establishing.pop(established.name, None)
        self._establish_more()

    def _spawn(self, name: str, cls: type[MailActor], plan: Plan, label: str) -> None:
        """A consumer begins again for ever, later and later: its mail waits for it."""
        child = self.spawn(cls, plan, self._gateway, name=label, supervision=FOR_EVER)
        self._children[name] = child
        self._plans[child] = plan

    @handles(ChildFailed)
    def on_child_failed(self, failed: ChildFailed, sender: Address) -> None:
        """It begins again by itself, with its plan - unless the node drains."""
        log.error("consumer_failed", name=failed.name, reason=failed.reason, action=failed.action)
        if plan := self._plans.get(failed.child):
            self._broken[plan.name] = None
            if plan.name in self._draining:
                self._end(plan.name)

    @handles(Begun)
    def on_begun(self, begun: Begun, sender: Address) -> None:
        self._broken.pop(begun.name, None)

    @handles(Consume)
    def on_consume(self, wanted: Consume, sender: Address) -> None:
        """A consumer that is attached by hand. It is made once: a handler of its last
        attachment goes before those of the next."""
        name = wanted.name
        if name not in self._children:
            self._spawn(name, MailActor, plan_of(name, dict.fromkeys(wanted.boxes)), name)
        self.tell(sender, self._children[name])

    @handles(Whereabouts)
    def on_whereabouts(self, wanted: Whereabouts, sender: Address) -> None:
        known = {GATEWAY: self._gateway, **self._children}
        if self._fleet is not None:
            known |= {REBALANCE: self._fleet.rebalance, HANDOFFS: self._fleet.handoffs}
        self.tell(sender, known.get(wanted.name))

    # -- the fleet --------------------------------------------------------------------

    @handles(Settled)
    def on_settled(self, settled: Settled, sender: Address) -> None:
        assert self._fleet is not None
        self._fleet.settled, self._fleet.held = True, settled.seats
        self._establish_more()

    @handles(SessionTaken)
    def on_taken(self, taken: SessionTaken, sender: Address) -> None:
        """Another process has this node's id, and lives: there can be one."""
        lease = taken.lease
        why = f"a node that goes by {lease.node!r} is alive ({lease.owner})"
        self._answer_start(NotStarted(why))

    @handles(SessionBegan, SessionRenewed, SessionDoubted, SessionEnded)
    def on_session(self, _: object, sender: Address) -> None:
        """The gates and the supervisors act on it; the root has nothing to add."""

    @handles(StandAside)
    def on_stand_aside(self, wanted: StandAside, sender: Address) -> None:
        if self._fleet is not None and not self._leaving:  # there is no way back from a drain
            self._fleet.stay_away(self, on=wanted.on)

    @handles(Relabel)
    def on_relabel(self, wanted: Relabel, sender: Address) -> None:
        if self._fleet is not None:
            self._fleet.relabel(self, wanted.labels)

    @handles(Reconsider)
    def on_reconsider(self, wanted: Reconsider, sender: Address) -> None:
        if self._fleet is not None:
            self._fleet.reconsider(self, wanted.facts)

    @handles(SeatsDrained)
    def on_seats_drained(self, drained: SeatsDrained, sender: Address) -> None:
        self._cut += drained.cut
        self._stuck += drained.stuck
        self._draining.pop(FLEET, None)
        self._report_drained()

    @handles(SessionLeft)
    def on_session_left(self, _: SessionLeft, sender: Address) -> None:
        self._session_left = True
        self._report_drained()

    # -- drain ------------------------------------------------------------------------

    @handles(DrainNode)
    def on_drain(self, wanted: DrainNode, sender: Address) -> None:
        self._drainer, self._leaving, self._flushed = sender, True, None
        self._to_establish.clear()
        self._draining = dict.fromkeys(self._children)
        if self._fleet is not None:
            self._draining[FLEET] = None
            self._fleet.drain(self, wanted.bound_s)
        for name, child in self._children.items():
            if name in self._broken:
                self._end(name)
            else:
                self.tell(child, Drain())
        self.timer("bound", wanted.bound_s, _BoundReached(given_up=False))
        self._report_drained()

    def _end(self, name: str) -> None:
        """It broke, and begins again who knows when: what it held goes back without it."""
        self.watch(self._children[name])
        self.stop(self._children[name])

    @handles(Terminated)
    def on_terminated(self, terminated: Terminated, sender: Address) -> None:
        plan = self._plans[terminated.address]
        self.tell(self._gateway, ClearLife(plan.life + 1, terminated.address))

    @handles(LifeCleared)
    def on_cleared(self, cleared: LifeCleared, sender: Address) -> None:
        plan = self._plans[cleared.owner]
        self.on_drained(Drained(plan.name, tuple(plan.cut)), cleared.owner)

    @handles(Drained)
    def on_drained(self, drained: Drained, sender: Address) -> None:
        self._draining.pop(drained.name, None)
        self._cut.extend((drained.name, key) for key in drained.cut)
        self._report_drained()

    @handles(Flushed)
    def on_flushed(self, _: Flushed, sender: Address) -> None:
        self._flushed = True
        self._report_drained()

    @handles(_BoundReached)
    def on_bound(self, bound: _BoundReached, sender: Address) -> None:
        if bound.given_up:
            self._report_drained(stuck=tuple(self._draining) or (GATEWAY,))
            return
        for name in self._draining:
            if name in self._children:  # the fleet's seats are cut by their own supervisor
                self.tell(self._children[name], CutShort())
        self.timer("bound", CUT_GRACE_S, _BoundReached(given_up=True))

    def _report_drained(self, stuck: tuple[str, ...] = ()) -> None:
        """The gateway has told the broker everything before the session is given up; where a
        seat is stuck it is not given up, but lapses: its handler may still run."""
        if not self._drainer:
            return
        if self._flushed is None and not self._draining:
            self._flushed = False
            self.tell(self._gateway, Flush())
        stuck = (*self._stuck, *stuck)
        if self._flushed and not stuck and not self._session_left and not self._left_asked:
            assert self._fleet is not None
            self._left_asked = True
            self._fleet.leave(self)
        if stuck or (self._flushed and self._session_left):
            self.cancel_timer("bound")
            self.tell(self._drainer, NodeDrained(tuple(self._cut), stuck))
            self._drainer = None
