"""Faults of a seat that changes hands in order: all go at once, or something is lost on the way."""

from __future__ import annotations

from actors.machines.waves import Waves
from actors.rebalance import PlacementSupervisor
from actors.tenure import Tenure
from crewlet.node.pause_watch import PauseWatch
from tests.mutants.catalogue.cases import node
from tests.mutants.mutant import Patches, Tier

TIER = Tier("leaving")


def leaving(test: str) -> str:
    return f"tests/actors/fleet/test_leaving.py::test_{test}"


@TIER.fault(leaving("each_of_many_seats_is_without_a_node_for_a_moment_only"), lines=(272,))
def all_seats_are_let_go_of_at_once(patch: Patches) -> None:
    """The last of a thousand waits for all before it."""
    due = Waves.due

    def all_of_them(waves: Waves, now: float) -> object:
        waves._window._size = 1e9
        return due(waves, now)

    patch.set(Waves, "due", all_of_them)


@TIER.fault(
    leaving("mail_for_a_seat_of_a_node_that_leaves_is_worked_by_the_next_at_once"), lines=(272,)
)
def a_node_that_leaves_starts_turns(patch: Patches) -> None:
    """A turn of minutes begins on a node that has seconds left."""

    def confirmed(tenure: Tenure, now: float) -> bool:
        return tenure.may_settle(now) and now < tenure.session.start_until

    patch.set(Tenure, "may_start", confirmed)


@TIER.fault(
    leaving("mail_for_a_seat_of_a_node_that_leaves_is_worked_by_the_next_at_once"), lines=(272,)
)
def mail_waits_until_its_seat_has_its_turn_to_go(patch: Patches) -> None:
    """Nobody works the seat, and nobody else may."""
    patch.handler(PlacementSupervisor, "on_wanted", lambda actor, wanted, sender: None)


@TIER.fault(
    node(
        "pause_watch.py::"
        "test_what_a_person_says_while_a_seat_is_on_its_way_holds_where_it_arrives[pause]"
    ),
    node(
        "pause_watch.py::"
        "test_what_a_person_says_while_a_seat_is_on_its_way_holds_where_it_arrives[resume]"
    ),
    lines=(147,),
)
def a_pause_that_comes_on_the_way_is_forgotten(patch: Patches) -> None:
    """It was heard by a node that did not have the seat yet."""
    patch.set(PauseWatch, "established", lambda watch, handle: None)
