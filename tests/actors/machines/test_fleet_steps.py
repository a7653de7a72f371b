"""The placement of a fleet against the steps that `crewlet.testing.strategies` draws."""

from __future__ import annotations

import pytest
from fleet_player import Player
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from actors.machines.placement import Demand
from crewlet.testing import steps
from crewlet.testing.strategies import demands, fleet_plans, fleet_steps

SEATS = st.lists(demands(), min_size=1, max_size=12)


class Fleet(RuleBasedStateMachine):
    """One rule for each thing that befalls it."""

    @initialize(seats=SEATS, first=fleet_steps(kinds=[steps.Joined]))
    def begin(self, seats: list[Demand], first: steps.Joined) -> None:
        self.player = Player(seats)
        self.player.play(first)

    @rule(step=fleet_steps(kinds=[steps.Joined]))
    def a_node_joins(self, step: steps.Joined) -> None:
        self.player.play(step)

    @rule(step=fleet_steps(kinds=[steps.Died]))
    def a_node_dies(self, step: steps.Died) -> None:
        self.player.play(step)

    @rule(step=fleet_steps(kinds=[steps.Closed, steps.Opened]))
    def a_node_leaves_or_stays(self, step: steps.Closed | steps.Opened) -> None:
        self.player.play(step)

    @rule(step=fleet_steps(kinds=[steps.Labelled]))
    def a_node_has_other_labels(self, step: steps.Labelled) -> None:
        self.player.play(step)

    @rule(step=fleet_steps(kinds=[steps.Ordered]))
    def an_operator_moves_a_seat(self, step: steps.Ordered) -> None:
        self.player.play(step)

    @rule(step=fleet_steps(kinds=[steps.Heard]))
    def a_node_hears(self, step: steps.Heard) -> None:
        self.player.play(step)

    @rule(step=fleet_steps(kinds=[steps.Turned]))
    def a_node_decides(self, step: steps.Turned) -> None:
        self.player.play(step)

    @rule()
    def all_of_them_hear_and_decide_in_turn(self) -> None:
        rounds(self.player, 1)

    @invariant()
    def each_seat_is_on_one_node(self) -> None:
        if hasattr(self, "player"):
            self.player.check()

    def teardown(self) -> None:
        if hasattr(self, "player"):
            comes_to_rest(self.player)


def rounds(player: Player, most: int) -> int:
    """How many rounds changed something: all hear what stands, and decide one after the other."""
    for number in range(most):
        before = dict(player.rows)
        for node in sorted(player.members):
            player.play(steps.Heard(node))
        for node in sorted(player.members):
            player.play(steps.Turned(node))
        player.check()
        if before == player.rows:
            return number
    return most


def comes_to_rest(player: Player) -> None:
    """L10: once nothing happens any more, it ends - and then every seat that somebody may work is
    worked, each group is even, and nothing moves again."""
    assert rounds(player, 40) < 40, "it flaps"
    for demand, places in player.groups().items():
        able, held = player.able(demand), player.held(demand)
        assert sum(held.values()) == (len(places) if able else 0), "a free seat waits"
        assert set(held) <= set(able)
        ordered = any(place.ordered for place in places)
        if able and not ordered:
            counts = [held[id] for id in able]
            assert max(counts) - min(counts) <= 1, counts
    assert rounds(player, 3) == 0


Fleet.TestCase.settings = settings(
    derandomize=True,
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.certifies(272)
class TestFleet(Fleet.TestCase):
    pass


@pytest.mark.certifies(272)
@settings(derandomize=True, max_examples=150, deadline=None, database=None)
@given(SEATS, fleet_plans())
def test_whatever_befell_a_fleet_it_comes_to_rest(
    seats: list[Demand], plan: tuple[steps.FleetStep, ...]
) -> None:
    player = Player(seats)
    for step in plan:
        player.play(step)
        player.check()
    comes_to_rest(player)
