"""A node's session against the steps that `crewlet.testing.strategies` draws."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from session_player import Player

from actors.machines import lease as machine
from actors.machines.lease import State
from actors.machines.timing import Timing, scaled
from crewlet.testing import steps
from crewlet.testing.strategies import session_inputs, session_plans, session_steps, timings


class Sessions(RuleBasedStateMachine):
    """One rule for each thing that befalls it. What has to hold, the player asserts."""

    @initialize(timing=timings())
    def begin(self, timing: Timing) -> None:
        self.player = Player(timing)

    @rule(step=session_steps(kinds=[steps.Passed]))
    def time_passes(self, step: steps.Passed) -> None:
        self.player.play(step)

    @rule(step=session_steps(kinds=[steps.Stopped]))
    def it_is_stopped(self, step: steps.Stopped) -> None:
        self.player.play(step)

    @rule(step=session_steps(kinds=[steps.Applied]))
    def the_store_does_it(self, step: steps.Applied) -> None:
        self.player.play(step)

    @rule(step=session_steps(kinds=[steps.Answered]))
    def the_store_answers(self, step: steps.Answered) -> None:
        self.player.play(step)

    @rule(step=session_steps(within_s=1.0, kinds=[steps.Answered]))
    def the_store_answers_at_once(self, step: steps.Answered) -> None:
        self.player.play(step)

    @rule(step=session_steps(kinds=[steps.Unheard]))
    def the_answer_is_lost(self, step: steps.Unheard) -> None:
        self.player.play(step)

    @rule(step=session_steps(kinds=[steps.Rivalled]))
    def somebody_else_writes(self, step: steps.Rivalled) -> None:
        self.player.play(step)

    @rule(given=session_inputs(leaves=False))
    def it_is_told(self, given: machine.Input) -> None:
        self.player.step(given)

    @precondition(lambda self: len(self.player.epochs) > 1)
    @rule()
    def it_leaves(self) -> None:
        self.player.step(machine.Leave())

    @invariant()
    def it_is_as_it_should_be(self) -> None:
        if hasattr(self, "player"):
            self.player.check()

    def teardown(self) -> None:
        """With a store that answers and nobody else it has a session, and gives it up."""
        if not hasattr(self, "player"):
            return
        player = self.player
        if not player.machine._leaving:
            honest(player, 3 * player.timing.ttl_s + 3.0)
            assert player.machine.state is State.HELD
            assert player.now < player.machine.valid_until
            player.step(machine.Leave())
        honest(player, player.timing.ttl_s)
        assert player.machine.state is State.LEFT and player.left == 1
        assert not any(tenure.may_settle(player.now) for tenure, _ in player.tenures)


def honest(player: Player, for_s: float) -> None:
    """Everything is answered a moment after it was asked."""
    until = player.now + for_s
    while player.now < until and player.machine.state is not State.LEFT:
        if player.call is not None:
            player.play(steps.Answered(0.01))
        else:
            player.play(steps.Passed(max(0.0, min(player.wake, until) - player.now) + 1e-6))


Sessions.TestCase.settings = settings(
    derandomize=True,
    max_examples=80,
    stateful_step_count=50,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.certifies(272)
class TestSessions(Sessions.TestCase):
    pass


@pytest.mark.certifies(272)
@settings(derandomize=True, max_examples=100, deadline=None, database=None)
@given(session_plans())
def test_no_plan_of_faults_makes_it_believe_in_what_it_has_not(
    plan: tuple[steps.SessionStep, ...],
) -> None:
    player = Player(scaled())
    for step in plan:
        player.play(step)
