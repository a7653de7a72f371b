"""Random walks: an honest broker, handlers of every kind, brakes at any moment."""

from __future__ import annotations

import pytest
from consumer_caller import BOX, Caller, letter
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.delivery import Ack, BatchOptions, Defer, Delivery, Letter, Nak, Outcome, Partly
from actors.machines import signals
from actors.machines.consumer import State

BRAKES = st.sampled_from(
    [
        signals.Quiesce(),
        signals.Unquiesce(),
        signals.Hold("run"),
        signals.Hold("provider"),
        signals.Lift("run"),
        signals.Detach(),
        signals.Cut(),
    ]
)
OUTCOMES = st.sampled_from([Ack(), Nak("boom"), Defer("busy", 3.0)])
OPTIONS = st.builds(BatchOptions, max_batch=st.integers(1, 6), linger_s=st.sampled_from([0.0, 5.0]))
MAIL = st.tuples(
    st.sampled_from("abc"),
    st.one_of(st.none(), st.integers(0, 5)),
    st.sampled_from([1, 1, 2, 3, 4, 24, 25, 26, None]),
)


class Walk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.caller = Caller()
        self.position = 0

    def letters(self, mail: list[tuple[str, int | None, int | None]]) -> list[Letter]:
        made = []
        for key, at, count in mail[: self.caller.pull.most if self.caller.pull else 0]:
            self.position += 1
            made.append(letter(self.position, key, at=at, count=count))
        return made

    # -- the broker and the handlers --------------------------------------------------

    @precondition(lambda self: self.caller.releases == self.caller.attaches)
    @rule(options=OPTIONS)
    def attach(self, options: BatchOptions) -> None:
        self.caller.attach(options)

    @precondition(lambda self: self.caller.pull)
    @rule(mail=st.lists(MAIL, max_size=6), after_s=st.integers(0, 3), spoiled=st.booleans())
    def answer_the_pull(self, mail: list, after_s: int, spoiled: bool) -> None:
        self.caller.now += after_s
        letters = self.letters(mail)
        bad = []
        if spoiled:
            self.position += 1
            bad.append(Delivery(BOX, b"\xff", 1, self.position, "spoiled"))
        self.caller.pulled(*letters, spoiled=bad)

    @precondition(lambda self: self.caller.pull)
    @rule(options=OPTIONS)
    def reload(self, options: BatchOptions) -> None:
        if self.caller.consumer.state is State.PULLING:  # else the drain has its options
            self.caller.options = options

    @precondition(lambda self: self.caller.pull)
    @rule()
    def fail_the_pull(self) -> None:
        self.caller.pull_failed()

    @precondition(lambda self: self.caller.run)
    @rule(outcome=OUTCOMES)
    def end_the_run(self, outcome: Outcome) -> None:
        self.caller.ended(outcome)

    @precondition(lambda self: self.caller.run)
    @rule(outcome=OUTCOMES, most=st.integers(0, 3))
    def end_a_part_of_the_run(self, outcome: Outcome, most: int) -> None:
        assert self.caller.run is not None
        letters = self.caller.run.partition.letters
        self.caller.ended(Partly(tuple(one.id for one in letters[::-1][:most]), outcome))

    @precondition(lambda self: self.caller.abandoned)
    @rule(outcome=OUTCOMES)
    def end_a_cut_run(self, outcome: Outcome) -> None:
        given = signals.Ended(self.caller.abandoned[-1], outcome)
        assert self.caller.step(given) == []

    @precondition(lambda self: self.caller.run)
    @rule()
    def finish_the_run(self) -> None:
        self.caller.ended(Ack())

    @precondition(lambda self: self.caller.unsettled)
    @rule()
    def confirm(self) -> None:
        self.caller.settled()

    @precondition(lambda self: self.caller.timers)
    @rule()
    def fire(self) -> None:
        self.caller.fired(next(iter(self.caller.timers)))

    # -- brakes -----------------------------------------------------------------------
    # One rule for all of them: a consumer that is braked most of the time shows little.

    @rule(signal=BRAKES)
    def brake(self, signal: signals.Input) -> None:
        self.caller.step(signal)

    @rule()
    def let_go_of_all_brakes(self) -> None:
        for signal in (signals.Unquiesce(), signals.Lift("run"), signals.Lift("provider")):
            self.caller.step(signal)

    @precondition(lambda self: self.position > 10)
    @rule(leaves=st.booleans())
    def drain_the_client(self, leaves: bool) -> None:
        self.caller.step(signals.Drain() if leaves else signals.Pause())

    # -- what always holds ------------------------------------------------------------

    @invariant()
    def the_machine_and_its_caller_agree(self) -> None:
        caller, consumer = self.caller, self.caller.consumer
        assert consumer.braked == caller.braked
        assert consumer.held == len(caller.unanswered)
        assert (consumer.running is None) == (caller.run is None)
        assert 0 <= caller.attaches - caller.releases <= 1

    @invariant()
    def a_braked_consumer_recalls_its_pull_and_a_free_one_is_at_something(self) -> None:
        caller = self.caller
        if caller.braked:
            assert caller.pull is None or caller.recalled
        else:
            assert caller.pull or caller.run or caller.unsettled or caller.timers

    def teardown(self) -> None:
        caller = self.caller
        caller.quiet(Nak("boom"))
        caller.step(signals.Detach())
        caller.quiet()
        assert caller.unanswered == []
        assert caller.releases == caller.attaches
        assert caller.timers == {}
        assert caller.consumer.state is State.DETACHED


Walk.TestCase.settings = settings(
    derandomize=True,
    max_examples=300,
    stateful_step_count=50,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.certifies(34, 35, 65, 66, 67, 68, 79, 80, 83, 84)
class TestWalk(Walk.TestCase):
    pass
