"""Hypothesis strategies for what a fleet is made of: plans, leases, placements, hand-offs.

    @given(plans(profile="lease"))
    def test_mine(plan): ...

Seeds find; hypothesis proves small things. `plans` and `decisions` feed the simulator, the others
the machines of actors/machines, which have no I/O: `session_*` the session of a node, `takes`,
`give_ups`, `fences` and `handoff_inputs` the hand-off of a seat, `fleet_*` and `boards` the
placement. What the steps mean stands in `crewlet.testing.steps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, digits

from hypothesis import strategies as st

from actors.machines import handoff, lease
from actors.machines.placement import Board, Demand, Member, Place
from actors.machines.timing import Timing, scaled
from actors.simulation import faults
from actors.simulation.faults import Decision, Knobs, Plan, Profile
from actors.tenure import NODE, SEAT, Lease
from crewlet.testing import steps

names = st.tuples(
    st.sampled_from(ascii_lowercase), st.text(ascii_lowercase + digits, max_size=6)
).map("".join)
"""Handles, node ids, labels."""


def timings() -> st.SearchStrategy[Timing]:
    """Numbers of leases that make sense together."""
    return st.sampled_from((1.0, 3.0, 20.0, 60.0)).map(scaled)


def leases(resource: str = "") -> st.SearchStrategy[Lease]:
    """A row: of a seat unless told."""
    return st.builds(
        Lease,
        resource=st.just(resource) if resource else names.map(lambda name: SEAT + name),
        owner=st.builds("{}#{}".format, names, st.integers(1, 9)),
        node=names,
        epoch=st.integers(1, 50),
        session=st.integers(1, 50),
        released=st.booleans(),
        preferred=st.one_of(st.just(""), names),
        revision=st.integers(1, 1000),
    )


# -- plans for the simulator ---------------------------------------------------------------


def decisions(
    *, nodes: int = 3, within_s: float = 60.0, kinds: Sequence[str] = faults.KINDS
) -> st.SearchStrategy[Decision]:
    """One thing that goes wrong."""
    return st.builds(
        Decision,
        t=st.floats(0.0, within_s, allow_nan=False).map(lambda t: round(t, 3)),
        kind=st.sampled_from(sorted(kinds)),
        node=st.integers(0, nodes - 1),
        length_s=st.floats(0.1, 40.0, allow_nan=False).map(lambda t: round(t, 3)),
        x=st.integers(0, 5).map(float),
        text=st.just(""),
    ).map(_spelled)


def _spelled(decision: Decision) -> Decision:
    """The kinds that need a word have one."""
    words = {"cut": "both", "failpoint": faults.FAILPOINTS[int(decision.x)]}
    text = words.get(decision.kind, "")
    x = decision.x + 1.0 if decision.kind in ("failpoint", "slow") else decision.x
    return Decision(decision.t, decision.kind, decision.node, decision.length_s, x, text)


def plans(
    *,
    profile: Profile = "swarm",
    nodes: int = 3,
    seats: int = 3,
    within_s: float = 60.0,
    most: int = 12,
    kinds: Sequence[str] = faults.KINDS,
) -> st.SearchStrategy[Plan]:
    """A whole plan of a few decisions, for a small fleet."""
    some = decisions(nodes=nodes, within_s=within_s, kinds=kinds)
    in_order = st.lists(some, max_size=most).map(
        lambda made: tuple(sorted(made, key=lambda one: one.t))
    )
    knobs = Knobs(nodes=nodes, seats=seats, publish_rate=1.0)
    return st.builds(
        Plan,
        seed=st.integers(0, 2**31),
        profile=st.just(profile),
        knobs=st.just(knobs),
        decisions=in_order,
    )


# -- around a session ----------------------------------------------------------------------


def session_steps(
    node: str = "n1",
    *,
    within_s: float = 60.0,
    kinds: Sequence[type[steps.SessionStep]] = steps.SESSION_STEPS,
) -> st.SearchStrategy[steps.SessionStep]:
    """One thing that befalls a session: time (up to `within_s`), the store's answers (up to a
    tenth of that), a rival."""
    length = st.floats(0.0, within_s, allow_nan=False).map(lambda s: round(s, 3))
    made: dict[type, st.SearchStrategy[steps.SessionStep]] = {
        steps.Passed: st.builds(steps.Passed, by_s=length),
        steps.Stopped: st.builds(steps.Stopped, by_s=length),
        steps.Applied: st.just(steps.Applied()),
        steps.Answered: st.builds(steps.Answered, after_s=length.map(lambda s: round(s / 10, 3))),
        steps.Unheard: st.builds(steps.Unheard, applied=st.booleans()),
        steps.Rivalled: st.builds(steps.Rivalled, row=leases(NODE + node)),
    }
    return st.one_of([made[kind] for kind in kinds])


def session_plans(
    node: str = "n1", *, within_s: float = 60.0, most: int = 30
) -> st.SearchStrategy[tuple[steps.SessionStep, ...]]:
    """A fault plan of one session: its steps in their order, for a player that has no rules."""
    return st.lists(session_steps(node, within_s=within_s), max_size=most).map(tuple)


def session_inputs(*, leaves: bool = True) -> st.SearchStrategy[lease.Input]:
    """Inputs of `SessionMachine` that may come at any time; `leaves`: its last one too."""
    said = st.builds(lease.About, about=st.dictionaries(names, names, max_size=2))
    some: list[st.SearchStrategy[lease.Input]] = [said, st.just(lease.Woken())]
    if leaves:
        some.append(st.just(lease.Leave()))
    return st.one_of(some)


# -- around a hand-off ---------------------------------------------------------------------


def takes(handle: str = "dev") -> st.SearchStrategy[handoff.Take]:
    """A seat is to be claimed: it was never had, or its last row is this one."""
    row = st.one_of(st.none(), leases(SEAT + handle))
    return st.builds(handoff.Take, row=row, died=st.booleans())


def give_ups() -> st.SearchStrategy[handoff.GiveUp]:
    """It is to be let go of in order, for whatever reason and for whomever."""
    return st.builds(
        handoff.GiveUp, reason=names, to=st.one_of(st.just(""), names), ordered=st.booleans()
    )


def fences() -> st.SearchStrategy[handoff.Fence]:
    """It is not this node's any more."""
    return st.builds(handoff.Fence, reason=names)


def handoff_inputs(handle: str = "dev") -> st.SearchStrategy[handoff.Input]:
    """Every input of the hand-off machine; those that are illegal now are refused by it."""
    claimed = st.builds(handoff.Claimed, row=leases(SEAT + handle))
    return st.one_of(takes(handle), claimed, give_ups(), fences(), st.sampled_from(_PLAIN))


_PLAIN: Sequence[handoff.Input] = (
    handoff.NotClaimed(),
    handoff.Established(),
    handoff.NotEstablished(),
    handoff.Empty(),
    handoff.NotEmpty(),
    handoff.Beat(),
    handoff.Forsaken(),
    handoff.Released(),
    handoff.NotReleased(),
)


# -- around a fleet ------------------------------------------------------------------------


def node_ids(nodes: int = 5) -> st.SearchStrategy[str]:
    """`n1` to `nN`."""
    return st.sampled_from([f"n{number}" for number in range(1, nodes + 1)])


def labels() -> st.SearchStrategy[dict[str, str]]:
    """What a node has: few names and values, so that demands meet them."""
    zones = st.sampled_from(("east", "west"))
    return st.fixed_dictionaries({}, optional={"zone": zones, "gpu": st.just("yes")})


def demands(nodes: int = 5) -> st.SearchStrategy[Demand]:
    """What a seat asks for: nothing as often as not, else labels or one node."""
    anything = st.just(Demand())
    asked = labels().map(lambda found: Demand(labels=tuple(sorted(found.items()))))
    return st.one_of(anything, anything, asked, node_ids(nodes).map(Demand))


def fleet_steps(
    nodes: int = 5, *, kinds: Sequence[type[steps.FleetStep]] = steps.FLEET_STEPS
) -> st.SearchStrategy[steps.FleetStep]:
    """One thing that befalls a fleet: nodes, what they have, operators, and who decides when."""
    ids = node_ids(nodes)
    made: dict[type, st.SearchStrategy[steps.FleetStep]] = {
        steps.Joined: st.builds(steps.Joined, node=ids, labels=labels()),
        steps.Died: st.builds(steps.Died, node=ids),
        steps.Closed: st.builds(steps.Closed, node=ids),
        steps.Opened: st.builds(steps.Opened, node=ids),
        steps.Labelled: st.builds(steps.Labelled, node=ids, labels=labels()),
        steps.Ordered: st.builds(steps.Ordered, seat=st.integers(0, 99), node=ids),
        steps.Heard: st.builds(steps.Heard, node=ids),
        steps.Turned: st.builds(steps.Turned, node=ids),
    }
    return st.one_of([made[kind] for kind in kinds])


def fleet_plans(
    nodes: int = 5, *, most: int = 30
) -> st.SearchStrategy[tuple[steps.FleetStep, ...]]:
    """Steps of a fleet in their order."""
    return st.lists(fleet_steps(nodes), max_size=most).map(tuple)


@st.composite
def boards(draw: st.DrawFn, *, nodes: int = 5, seats: int = 12) -> Board:
    """What a placement strategy decides from: members, and seats in any hands."""
    ids = [f"n{number}" for number in range(1, draw(st.integers(1, nodes)) + 1)]
    members = [Member(id, draw(labels()), draw(st.booleans()) or id == ids[0]) for id in ids]
    anybody = st.one_of(st.just(""), st.sampled_from(ids))
    places = [
        Place(
            handle=f"s{number}",
            demand=draw(demands(nodes)),
            holder=draw(anybody),
            preferred=draw(anybody),
            waits=draw(st.booleans()),
        )
        for number in range(draw(st.integers(0, seats)))
    ]
    return Board(draw(st.sampled_from(ids)), members, places)
