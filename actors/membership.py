"""A node's part in its fleet as the root sees it: its supervisors, from joining to leaving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from actors.fleet import FleetSpec
from actors.fleet_messages import (
    AwaitSettled,
    DrainSeats,
    LookAgain,
    NewLabels,
    StopTaking,
    WatchFleet,
)
from actors.handoffs import SeatSupervisor
from actors.leases import BeginSession, LeaseSupervisor, LeaveSession, SayAbout
from actors.rebalance import PlacementSupervisor
from actors.system import Actor, Address, Supervision
from actors.tenure import Session

HANDOFFS: Final = "handoffs"
LEASES: Final = "leases"
REBALANCE: Final = "rebalance"

TOGETHER: Final = Supervision(on_failure="escalate")
"""What one of them knows is nowhere else: without it the node ends, its session with it."""


class Membership:
    """Made inside the root's constructor. `settled`: what this node took at first is there."""

    def __init__(self, root: Actor, spec: FleetSpec, gateway: Address) -> None:
        self.spec = spec
        self.session = Session()
        self.settled = False
        self.held = 0
        self.begun = False
        self._labels = dict(spec.labels)
        self._facts = dict(spec.facts)
        self._aside = False
        self.leases = root.spawn(
            LeaseSupervisor,
            spec.store,
            spec.node,
            spec.owner,
            spec.timing,
            self.session,
            spec.about(leaving=False, labels=spec.labels, facts=spec.facts),
            spec.seal,
            name=LEASES,
            supervision=TOGETHER,
        )
        self.handoffs = root.spawn(
            SeatSupervisor, spec, gateway, self.session, name=HANDOFFS, supervision=TOGETHER
        )
        self.rebalance = root.spawn(
            PlacementSupervisor,
            spec,
            self.handoffs,
            self.session,
            name=REBALANCE,
            supervision=TOGETHER,
        )

    def begin(self, root: Actor) -> None:
        """Hear the fleet, have a session, take what is to be taken."""
        if not self.begun:
            self.begun = True
            root.tell(self.rebalance, WatchFleet())
            listeners = (self.handoffs, self.rebalance, root.me)
            root.tell(self.leases, BeginSession(listeners))
            root.tell(self.rebalance, AwaitSettled())

    def stay_away(self, root: Actor, *, on: bool) -> None:
        """Take no seats any more and give up those that it has, or take some again."""
        self._aside = on
        root.tell(self.rebalance, StopTaking(on))
        self._say_about(root)

    def relabel(self, root: Actor, labels: Mapping[str, str]) -> None:
        """Offer something else from now on: seats come and go by it."""
        self._labels = dict(labels)
        root.tell(self.rebalance, NewLabels(self._labels))
        self._say_about(root)

    def reconsider(self, root: Actor, facts: Mapping[str, str]) -> None:
        """The company is another one: who works what is looked at again, and the row says so."""
        self._facts = dict(facts)
        root.tell(self.rebalance, LookAgain())
        self._say_about(root)

    def _say_about(self, root: Actor) -> None:
        about = self.spec.about(leaving=self._aside, labels=self._labels, facts=self._facts)
        root.tell(self.leases, SayAbout(about))

    def drain(self, root: Actor, bound_s: float) -> None:
        self.stay_away(root, on=True)
        root.tell(self.handoffs, DrainSeats(bound_s))

    def leave(self, root: Actor) -> None:
        root.tell(self.leases, LeaveSession())
