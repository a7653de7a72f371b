"""Hypothesis strategies for what a fleet is made of: plans, leases, placements, hand-offs.

    @given(plans(profile="lease"))
    def test_mine(plan): ...

Seeds find; hypothesis proves small things. `plans` and `decisions` feed the simulator, the others
the machines of actors/machines, which have no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from actors.machines import handoff, lease
from actors.machines.placement import Board, Demand, Member, Place
from actors.machines.timing import Timing, scaled
from actors.simulation import faults
from actors.simulation.faults import Decision, Knobs, Plan, Profile
from actors.tenure import NODE, SEAT, Lease

names = st.from_regex(r"[a-z][a-z0-9]{0,6}", fullmatch=True)
"""Handles, node ids, labels."""

seconds = st.floats(0.0, 60.0, allow_nan=False).map(lambda value: round(value, 3))


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


# -- inputs of the machines ----------------------------------------------------------------


def session_steps(node: str = "n1") -> st.SearchStrategy[tuple[float, str, Lease]]:
    """What befalls a session: how long after the last step, what becomes of what is asked
    (`answered`, `refused`, `unanswered`), and the row that a look finds."""
    outcomes = st.sampled_from(("answered", "answered", "answered", "refused", "unanswered"))
    return st.tuples(seconds, outcomes, leases(NODE + node))


def session_inputs() -> st.SearchStrategy[lease.Input]:
    """Inputs of `SessionMachine` that may come at any time."""
    return st.one_of(
        st.builds(lease.About, about=st.dictionaries(names, names, max_size=2)),
        st.just(lease.Woken()),
        st.just(lease.Leave()),
    )


def handoff_inputs(handle: str = "dev") -> st.SearchStrategy[handoff.Input]:
    """Every input of the hand-off machine; those that are illegal now are refused by it."""
    row = leases(SEAT + handle)
    return st.one_of(
        st.builds(handoff.Take, row=st.one_of(st.none(), row), died=st.booleans()),
        st.builds(handoff.Claimed, row=row),
        st.builds(handoff.GiveUp, reason=names, to=names, ordered=st.booleans()),
        st.builds(handoff.Fence, reason=names),
        st.sampled_from(_PLAIN),
    )


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


@st.composite
def boards(draw: st.DrawFn, *, nodes: int = 5, seats: int = 12) -> Board:
    """What a placement strategy decides from: members, and seats in any hands."""
    ids = [f"n{number}" for number in range(1, draw(st.integers(1, nodes)) + 1)]
    members = [
        Member(id, draw(st.dictionaries(st.sampled_from(("zone", "gpu")), names, max_size=1)),
               draw(st.booleans()) or id == ids[0])
        for id in ids
    ]  # fmt: skip
    anybody = st.one_of(st.just(""), st.sampled_from(ids))
    places = [
        Place(
            handle=f"s{number}",
            demand=Demand(node=draw(st.one_of(st.just(""), anybody))),
            holder=draw(anybody),
            preferred=draw(anybody),
            waits=draw(st.booleans()),
        )
        for number in range(draw(st.integers(0, seats)))
    ]
    return Board(draw(st.sampled_from(ids)), members, places)
