"""The hand-off of one seat between three nodes, and of one node alone under any input at all.

The three share a row: the store takes a claim only from whoever saw the last of it, and only where
the seat was let go of or its holder's session is over. They may be told anything at any time.
"""

from __future__ import annotations

from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from actors.machines import handoff as h
from actors.machines.handoff import Handoff, State
from actors.machines.signals import IllegalInput
from actors.tenure import Lease
from crewlet.testing.strategies import fences, give_ups, handoff_inputs, takes

Asked = TypeVar("Asked", bound=h.Effect)


class Node:
    """Of one seat: its machine, what was asked of its shell, and what is attached."""

    def __init__(self, number: int) -> None:
        self.id = f"n{number}"
        self.machine = Handoff()
        self.session = 1
        self.pending: list[h.Effect] = []
        self.claimed: Lease | None = None
        self.attached = False
        self.fenced = False

    @property
    def free(self) -> bool:
        return self.machine.state is State.FREE

    def awaits(self, kind: type[h.Effect]) -> bool:
        return any(isinstance(one, kind) for one in self.pending)

    def answered(self, kind: type[Asked]) -> Asked | None:
        """The oldest of its kind, which is awaited no more."""
        found = next((one for one in self.pending if isinstance(one, kind)), None)
        if found is not None:
            self.pending.remove(found)
        return found


WHICH = st.integers(0, 5)
MOSTLY = st.sampled_from((True, True, False))


class Three(RuleBasedStateMachine):
    """One rule for each input of the machine; a rule is of one of the nodes that it fits."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = [Node(number) for number in (1, 2, 3)]
        self.row: Lease | None = None

    def step(self, node: Node, given: h.Input) -> None:
        effects = node.machine.step(given)
        assert h.Establish not in map(type, effects[:-1]), "what is attached is attached last"
        for effect in effects:
            self.carry_out(node, effect)

    def carry_out(self, node: Node, effect: h.Effect) -> None:
        if node.fenced:
            assert isinstance(effect, h.Forsake | h.Gone), "it says something once it is fenced"
        match effect:
            case h.Establish(row=row):
                assert row == node.claimed, "attached without a claim"
                assert not node.attached, "attached twice"
                node.attached = True  # something of it may be, from now on
            case h.WriteRelease(row=row):
                assert row == node.claimed, "releases what it has not claimed"
                assert not node.attached, "released before it was detached"
                assert not node.awaits(h.WriteRelease), "two releases at a time"
            case h.Gone(voluntary=voluntary):
                assert not node.attached, "gone, and attached"
                assert node.claimed is not None or not voluntary
                node.claimed, node.fenced = None, False
                node.pending.clear()
        if not isinstance(effect, h.Gone | h.Alarm):
            node.pending.append(effect)

    def busy(self) -> list[Node]:
        return [node for node in self.nodes if not node.free]

    def idle(self) -> list[Node]:
        return [node for node in self.nodes if node.free]

    def asked(self, kind: type[h.Effect]) -> list[Node]:
        return [node for node in self.nodes if node.awaits(kind)]

    # -- placement ------------------------------------------------------------------------

    @precondition(lambda self: self.idle())
    @rule(which=WHICH, given=takes())
    def take(self, which: int, given: h.Take) -> None:
        """From the last row where the seat is to be had; else from one that is long past, and the
        claim comes too late."""
        to_be_had = self.row is None or self.row.released or not self.stands(self.row)
        row = self.row if to_be_had else given.row
        self.step(one_of(self.idle(), which), h.Take(row, given.died))

    @precondition(lambda self: self.busy())
    @rule(which=WHICH, given=give_ups())
    def give_up(self, which: int, given: h.GiveUp) -> None:
        self.step(one_of(self.busy(), which), given)

    # -- the session ----------------------------------------------------------------------

    @precondition(lambda self: self.busy())
    @rule(which=WHICH, times=st.sampled_from((1, 2, 25)))
    def beat(self, which: int, times: int) -> None:
        node = one_of(self.busy(), which)
        for _ in range(times):
            self.step(node, h.Beat())

    @rule(which=WHICH, given=fences())
    def the_session_ends(self, which: int, given: h.Fence) -> None:
        node = one_of(self.nodes, which)
        node.session += 1
        node.fenced = not node.free
        self.step(node, given)

    # -- the store ------------------------------------------------------------------------

    @precondition(lambda self: self.asked(h.WriteClaim))
    @rule(which=WHICH, heard=MOSTLY)
    def the_claim_is_written(self, which: int, heard: bool) -> None:
        self.claimed(one_of(self.asked(h.WriteClaim), which), heard)

    def claimed(self, node: Node, heard: bool) -> None:
        """Where nobody hears of it, what it did is seen on the watch."""
        if (asked := node.answered(h.WriteClaim)) is None:
            return
        row = self.claim(node, asked.row)
        if row is None or not heard:
            self.step(node, h.NotClaimed())
        else:
            node.claimed = row
            self.step(node, h.Claimed(row))

    def claim(self, node: Node, seen: Lease | None) -> Lease | None:
        """Under the session in which it was asked for: that may be over by now."""
        row = self.row
        if (seen.revision if seen else 0) != (row.revision if row else 0):
            return None
        if row is not None and not row.released and self.stands(row):
            return None
        self.row = Lease(
            resource="seat:dev",
            owner=node.id,
            node=node.id,
            epoch=(row.epoch if row else 0) + 1,
            session=node.session - node.fenced,
            revision=(row.revision if row else 0) + 1,
        )
        return self.row

    def stands(self, row: Lease) -> bool:
        """Its holder knows of it, and has the session that it is of."""
        holder = next(node for node in self.nodes if node.id == row.owner)
        return row.session == holder.session and holder.claimed == row

    @precondition(lambda self: self.asked(h.WriteRelease))
    @rule(which=WHICH, heard=MOSTLY)
    def the_release_is_written(self, which: int, heard: bool) -> None:
        self.released(one_of(self.asked(h.WriteRelease), which), heard)

    def released(self, node: Node, heard: bool) -> None:
        if (asked := node.answered(h.WriteRelease)) is None:
            return
        row = self.row
        if row is not None and row.revision == asked.row.revision:
            self.row = replace(row, released=True, preferred=asked.to, revision=row.revision + 1)
        self.step(node, h.Released() if heard else h.NotReleased())

    # -- the seat -------------------------------------------------------------------------

    @precondition(lambda self: self.asked(h.Establish))
    @rule(which=WHICH, well=MOSTLY)
    def it_is_established(self, which: int, well: bool) -> None:
        """Perhaps when it was given up long ago: the answer was on its way."""
        node = one_of(self.asked(h.Establish), which)
        node.answered(h.Establish)
        self.step(node, h.Established() if well else h.NotEstablished())

    @precondition(lambda self: self.asked(h.Drain))
    @rule(which=WHICH, well=MOSTLY)
    def it_is_taken_down(self, which: int, well: bool) -> None:
        self.drained(one_of(self.asked(h.Drain), which), well)

    def drained(self, node: Node, well: bool) -> None:
        if node.answered(h.Drain) is not None:
            node.attached = node.attached and not well
            self.step(node, h.Empty() if well else h.NotEmpty())

    @precondition(lambda self: self.asked(h.Forsake))
    @rule(which=WHICH)
    def it_is_forsaken(self, which: int) -> None:
        self.forsaken(one_of(self.asked(h.Forsake), which))

    def forsaken(self, node: Node) -> None:
        if node.answered(h.Forsake) is not None:
            node.attached = False
            self.step(node, h.Forsaken())

    # -- what always holds ----------------------------------------------------------------

    @invariant()
    def one_node_works_it(self) -> None:
        """Who is attached has the row, or has been told that it has not."""
        working = [node for node in self.nodes if node.attached and not node.fenced]
        assert len(working) <= 1, "a seat on two nodes"
        for node in working:
            assert self.row == node.claimed, "works what another may claim"

    @invariant()
    def who_is_free_has_nothing_and_who_holds_has_all(self) -> None:
        for node in self.nodes:
            if node.free:
                assert node.machine.row is None and node.claimed is None and not node.attached
            if node.machine.state is State.HELD:
                assert node.machine.row == node.claimed and node.attached

    def teardown(self) -> None:
        """Answered in good faith, nobody has it any more."""
        for node in self.busy():
            self.step(node, h.GiveUp("the end"))
            self.step(node, h.Beat())
            self.claimed(node, heard=True)
            self.drained(node, well=True)
            self.released(node, heard=True)
            self.forsaken(node)
            assert node.free, node.machine.state


def one_of(nodes: list[Node], which: int) -> Node:
    return nodes[which % len(nodes)]


Three.TestCase.settings = settings(
    derandomize=True,
    max_examples=120,
    stateful_step_count=50,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.certifies(272)
class TestThree(Three.TestCase):
    pass


@pytest.mark.certifies(272)
@settings(derandomize=True, max_examples=100, deadline=None, database=None)
@given(st.lists(handoff_inputs(), max_size=30))
def test_whatever_it_is_given_is_refused_whole_or_keeps_the_order(inputs: list[h.Input]) -> None:
    machine = Handoff()
    for one in inputs:
        known, state = dict(vars(machine)), machine.state
        try:
            effects = machine.step(one)
        except IllegalInput:
            assert vars(machine) == known
            continue
        kinds = [type(effect) for effect in effects]
        if h.Establish in kinds:
            assert state is State.CLAIMING and isinstance(one, h.Claimed)
        if h.WriteRelease in kinds and state is not State.RELEASING:
            assert isinstance(one, h.Empty), "released before it was detached"
        if isinstance(one, h.Fence):
            assert set(kinds) <= {h.Forsake, h.Gone}
        assert machine.row is None or machine.state is not State.FREE
