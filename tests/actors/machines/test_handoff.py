"""One seat on one node: whatever comes in whatever order, it is gone once, and nothing is said
that is not ours to say any more."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.machines import handoff as h
from actors.machines.handoff import ALARM_BEATS, Handoff, State
from actors.machines.signals import IllegalInput
from actors.tenure import Lease

ROW = Lease(resource="seat:s", owner="a:1", node="a", epoch=2, session=1, revision=7)
GIVE_UPS = st.builds(
    h.GiveUp,
    st.sampled_from(["balance", "moved", "drain"]),
    st.sampled_from(["", "b"]),
    st.booleans(),
)


class Shell(RuleBasedStateMachine):
    """The duties of a seat's supervisor: effects in their order, each answered by the input that
    names it, late or at once; what belongs to an earlier hand-off is not handed on."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = Handoff()
        self.takes = self.gones = 0
        self.forget()

    def forget(self) -> None:
        self.pending: dict[type, int] = dict.fromkeys(
            (h.WriteClaim, h.Establish, h.Drain, h.WriteRelease, h.Forsake), 0
        )
        self.given_up = self.fenced = self.empty = self.undead = False

    def step(self, given: h.Input) -> list[h.Effect]:
        effects = self.machine.step(given)
        for effect in effects:
            assert not isinstance(effect, h.Gone) or effect is effects[-1]
            if isinstance(effect, h.Gone):
                self.gones += 1
                assert self.machine.state is State.FREE and self.machine.row is None
                self.forget()
            elif not isinstance(effect, h.Alarm):
                self.pending[type(effect)] += 1
                self.check(effect)
        return effects

    def check(self, effect: h.Effect) -> None:
        if self.fenced:
            assert isinstance(effect, h.Forsake), "nothing is said once it is fenced"
        match effect:
            case h.WriteRelease():
                assert self.empty, "released while something of it was left"
                assert self.pending[h.WriteRelease] == 1, "two releases at a time"
            case h.Establish() | h.WriteClaim() | h.Forsake():
                assert self.pending[type(effect)] == 1
                assert not self.given_up or isinstance(effect, h.Forsake)

    def awaits(self, kind: type) -> bool:
        return self.pending[kind] > 0

    def answer(self, kind: type, given: h.Input) -> list[h.Effect]:
        self.pending[kind] -= 1
        return self.step(given)

    # -- placement ------------------------------------------------------------------------

    @precondition(lambda self: self.machine.state is State.FREE)
    @rule(row=st.sampled_from([None, ROW]), died=st.booleans())
    def take(self, row: Lease | None, died: bool) -> None:
        self.takes += 1
        assert self.step(h.Take(row, died)) == [h.WriteClaim(row)]

    @precondition(lambda self: self.machine.state is not State.FREE)
    @rule(given=GIVE_UPS)
    def give_up(self, given: h.GiveUp) -> None:
        self.given_up = True
        self.step(given)

    # -- the session ----------------------------------------------------------------------

    @rule(times=st.integers(1, 25))
    def beat(self, times: int) -> None:
        for _ in range(times):
            self.step(h.Beat())

    @precondition(lambda self: self.machine.state is not State.FREE)
    @rule()
    def fence(self) -> None:
        self.fenced = True
        self.step(h.Fence("the session is over"))

    # -- the store ------------------------------------------------------------------------

    @precondition(lambda self: self.awaits(h.WriteClaim))
    @rule()
    def claimed(self) -> None:
        effects = self.answer(h.WriteClaim, h.Claimed(ROW))
        if effects and isinstance(effects[0], h.Establish):
            assert not self.given_up

    @precondition(lambda self: self.awaits(h.WriteClaim))
    @rule()
    def not_claimed(self) -> None:
        self.answer(h.WriteClaim, h.NotClaimed())
        assert self.machine.state is State.FREE

    @precondition(lambda self: self.awaits(h.WriteRelease))
    @rule(known=st.booleans())
    def released(self, known: bool) -> None:
        self.answer(h.WriteRelease, h.Released() if known else h.NotReleased())

    # -- the seat -------------------------------------------------------------------------

    @precondition(lambda self: self.awaits(h.Establish))
    @rule(fails=st.booleans())
    def established(self, fails: bool) -> None:
        """Also after it was given up: the answer was on its way."""
        self.answer(h.Establish, h.NotEstablished() if fails else h.Established())

    @precondition(lambda self: self.awaits(h.Drain))
    @rule(empty=st.booleans())
    def drained(self, empty: bool) -> None:
        self.empty |= empty
        self.answer(h.Drain, h.Empty() if empty else h.NotEmpty())

    @precondition(lambda self: self.awaits(h.Forsake))
    @rule()
    def forsaken(self) -> None:
        self.answer(h.Forsake, h.Forsaken())
        assert self.machine.state is State.FREE

    # -- what always holds ----------------------------------------------------------------

    @invariant()
    def every_take_ends_once(self) -> None:
        assert self.gones == self.takes - (self.machine.state is not State.FREE)

    @invariant()
    def something_will_bring_it_on(self) -> None:
        waits = {
            State.CLAIMING: h.WriteClaim,
            State.ESTABLISHING: h.Establish,
            State.LEAVING: h.Drain,
        }
        state = self.machine.state
        if state in waits:
            assert self.awaits(waits[state]), state
        elif state is State.FENCING:
            assert self.awaits(h.Forsake) or self.awaits(h.WriteClaim)

    def teardown(self) -> None:
        """Answered in good faith, it is gone with a word, whatever state it was in."""
        if self.machine.state is State.FREE:
            return
        self.give_up(h.GiveUp("drain"))
        if self.awaits(h.WriteClaim):
            self.claimed()
        if self.awaits(h.Forsake):
            self.forsaken()
        if self.machine.state is State.UNDEAD:
            self.beat(1)
        if self.machine.state in (State.LEAVING, State.UNDEAD):
            self.drained(True)
        if self.machine.state is State.RELEASING:
            self.released(True)
        assert self.machine.state is State.FREE
        self.every_take_ends_once()


Shell.TestCase.settings = settings(
    derandomize=True,
    max_examples=200,
    stateful_step_count=30,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.certifies(272)
class TestShell(Shell.TestCase):
    pass


def at(*inputs: h.Input) -> Handoff:
    machine = Handoff()
    for given in inputs:
        machine.step(given)
    return machine


HELD = (h.Take(None, False), h.Claimed(ROW), h.Established())
UNDEAD = (*HELD, h.GiveUp("balance", "b"), h.NotEmpty())


def test_the_ordinary_course() -> None:
    machine = Handoff()
    assert machine.step(h.Take(ROW, True)) == [h.WriteClaim(ROW)]
    assert machine.step(h.Claimed(ROW)) == [h.Establish(ROW, reclaim=True)]
    assert machine.step(h.Established()) == [] and machine.was_held
    assert machine.step(h.GiveUp("moved", "b", ordered=True)) == [h.Drain()]
    assert machine.step(h.Empty()) == [h.WriteRelease(ROW, "b", ordered=True)]
    assert machine.step(h.Released()) == [h.Gone(True, "moved")]


def test_what_is_given_up_while_it_is_claimed_is_released_and_never_established() -> None:
    machine = at(h.Take(None, False))
    assert machine.step(h.GiveUp("balance", "b")) == []
    assert machine.step(h.Claimed(ROW)) == [h.Drain()]
    assert machine.step(h.Empty()) == [h.WriteRelease(ROW, "b", ordered=False)]


def test_a_claim_that_is_answered_after_the_session_ended_is_let_lie() -> None:
    for answer in (h.Claimed(ROW), h.NotClaimed()):
        machine = at(h.Take(None, False), h.Fence("over"))
        assert machine.step(answer) == [h.Gone(False, "over")]


def test_an_undead_seat_is_tried_again_with_each_renewal_and_an_alarm_at_every_twentieth() -> None:
    machine = at(*UNDEAD)
    heard = [machine.step(h.Beat()) for _ in range(2 * ALARM_BEATS)]
    assert [len(effects) for effects in heard] == ([1] * (ALARM_BEATS - 1) + [2]) * 2
    assert heard[ALARM_BEATS - 1] == [h.Alarm(ALARM_BEATS), h.Drain()]
    assert machine.step(h.Empty()) == [h.WriteRelease(ROW, "b", ordered=False)]


def test_a_release_that_nobody_answered_is_written_again_with_a_renewal_or_when_asked() -> None:
    for again in (h.Beat(), h.GiveUp("drain")):
        machine = at(*HELD, h.GiveUp("balance", "b"), h.Empty())
        assert machine.step(again) == []  # the first is still under way
        machine.step(h.NotReleased())
        assert machine.step(again) == [h.WriteRelease(ROW, "b", ordered=False)]


@pytest.mark.parametrize("before", [HELD, UNDEAD, HELD[:2], (*HELD, h.GiveUp("drain"))])
def test_what_is_fenced_says_nothing_any_more(before: tuple[h.Input, ...]) -> None:
    machine = at(*before)
    assert machine.step(h.Fence("over")) == [h.Forsake()]
    late = (h.Established(), h.NotEstablished(), h.Empty(), h.NotEmpty(), h.Beat(), h.GiveUp("x"))
    for given in (*late, h.Fence("again"), h.Released(), h.NotReleased()):
        assert machine.step(given) == []
    assert machine.step(h.Forsaken()) == [h.Gone(False, "over")]


def test_what_is_empty_when_the_session_ends_was_given_up_in_order() -> None:
    machine = at(*HELD, h.GiveUp("balance"), h.Empty())
    assert machine.step(h.Fence("over")) == [h.Gone(True, "over")]


def test_a_machine_that_takes_anew_remembers_nothing() -> None:
    machine = at(*HELD, h.Fence("over"), h.Forsaken(), h.Take(ROW, True), h.Claimed(ROW))
    assert not machine.was_held
    machine.step(h.NotEstablished())
    released = h.WriteRelease(ROW, "", ordered=False, mail_out=True, unprepared=True)
    assert machine.step(h.Empty()) == [released]


def test_what_nobody_asked_for_is_refused_and_changes_nothing() -> None:
    for before in ((), HELD[:1], HELD[:2], HELD, UNDEAD):
        for given in (h.Take(None, False), h.Claimed(ROW), h.NotClaimed(), h.Forsaken()):
            machine = at(*before)
            known = dict(vars(machine))
            if (not before and isinstance(given, h.Take)) or (
                before == HELD[:1] and isinstance(given, h.Claimed | h.NotClaimed)
            ):
                continue
            with pytest.raises(IllegalInput):
                machine.step(given)
            assert vars(machine) == known


@pytest.mark.certifies(272)
@pytest.mark.parametrize("undead", [False, True])
def test_an_operator_may_name_another_node_until_the_row_is_written(*, undead: bool) -> None:
    machine = Handoff()
    for given in (h.Take(None, died=False), h.Claimed(ROW), h.Established()):
        machine.step(given)
    machine.step(h.GiveUp("balance", "b"))
    if undead:
        machine.step(h.NotEmpty())
    assert machine.step(h.GiveUp("moved", "c", ordered=True)) == []
    assert machine.step(h.GiveUp("drain", "d")) == []
    (write,) = machine.step(h.Empty())
    assert isinstance(write, h.WriteRelease) and (write.to, write.ordered) == ("c", True)
    assert machine.step(h.GiveUp("moved", "d", ordered=True)) == []
    machine.step(h.NotReleased())
    (again,) = machine.step(h.Beat())
    assert isinstance(again, h.WriteRelease) and again.to == "d"


@pytest.mark.certifies(272)
def test_what_an_operator_said_of_a_claim_under_way_is_not_forgotten_in_a_drain() -> None:
    machine = Handoff()
    machine.step(h.Take(None, died=False))
    machine.step(h.GiveUp("moved", "b", ordered=True))
    machine.step(h.GiveUp("drain"))
    assert machine.step(h.Claimed(ROW)) == [h.Drain()]
    (write,) = machine.step(h.Empty())
    assert isinstance(write, h.WriteRelease) and (write.to, write.ordered) == ("b", True)
