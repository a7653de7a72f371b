"""What `crewlet.testing.strategies` draws is played, is what it says, and stands in the guide."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.machines.handoff import Input
from actors.machines.placement import Board, fair_shares
from actors.simulation.faults import Plan
from actors.simulation.run import run
from crewlet.company import parse_company
from crewlet.testing import steps, strategies
from crewlet.testing.simulated.campaign import rules_of
from crewlet.testing.simulated.quiet import quiet
from crewlet.testing.simulated.site import TwinSite
from crewlet.testing.simulation import play
from crewlet.testing.strategies import boards, fleet_plans, handoff_inputs, plans, session_plans
from crewlet.turn import Turn

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "simulation.md"
ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
KINDS = ("crash", "pause", "cut", "move", "leave")

few = settings(
    derandomize=True, max_examples=8, deadline=None, suppress_health_check=list(HealthCheck)
)
many = settings(derandomize=True, max_examples=100, deadline=None)


@few
@given(plans(within_s=20.0, most=6, kinds=KINDS))
def test_any_small_plan_is_survived(this: Plan):
    with quiet():
        assert run(this, TwinSite, rules=rules_of(this), faults_s=20.0).violations == ()


def test_a_drawn_plan_is_played_on_a_company_of_one_s_own_and_its_invariants_are_asked():
    company = parse_company("{name: Acme, roles: [{name: Dev, handle: dev}]}")
    worked: list[str] = []

    async def handler(turn: Turn) -> None:
        worked.append(turn.seat.handle)

    drawn: list[Plan] = []

    @settings(few, max_examples=1)
    @given(plans(within_s=20.0, most=2, kinds=KINDS))
    def first(this: Plan) -> None:
        drawn.append(this)

    first()
    outcome = play(drawn[0], company, handler, seconds=20.0)
    assert outcome.violations == () and set(worked) == {"dev"}
    broken = play(
        drawn[0], company, handler, seconds=20.0, invariants={"mine": lambda record: "never"}
    )
    assert {one.invariant for one in broken.violations} == {"mine"}


@many
@given(boards())
def test_no_two_nodes_that_see_one_board_take_the_same_seat(board: Board):
    taken = [
        handle
        for member in board.members
        for handle in fair_shares(replace(board, me=member.id)).take
    ]
    assert len(taken) == len(set(taken))


@pytest.mark.parametrize(
    ("strategy", "kinds"),
    [
        (session_plans(most=60), steps.SESSION_STEPS),
        (fleet_plans(most=60), steps.FLEET_STEPS),
        (st.lists(handoff_inputs(), max_size=60), get_args(Input)),
    ],
    ids=["session", "fleet", "hand-off"],
)
def test_every_kind_of_step_is_drawn(
    strategy: st.SearchStrategy[Sequence[object]], kinds: Sequence[type]
) -> None:
    seen: set[type] = set()

    @settings(many, max_examples=200)
    @given(strategy)
    def draw(drawn: Sequence[object]) -> None:
        seen.update(type(one) for one in drawn)

    draw()
    assert seen == set(kinds)


def test_the_guide_has_a_row_for_every_strategy():
    public = {
        name
        for name, made in vars(strategies).items()
        if inspect.isfunction(made)
        and made.__module__ == strategies.__name__
        and not name.startswith("_")
    }
    text = GUIDE.read_text(encoding="utf-8")
    assert set(ROW.findall(text[text.index("## With hypothesis") :])) == public
