"""Faults in what a turn is told of its mail, is charged to, and gets back from the dead."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from crewlet.events import Trace
from crewlet.inbound import build_turn, coalesce, turn_run
from crewlet.inbound.charging import NOTHING, Charge
from crewlet.inbound.coalesce import TO_YOU
from crewlet.inbound.constituent import Constituent
from crewlet.inbound.desk import Asker
from crewlet.node import dead_letters
from crewlet.turn import Turn
from tests.mutants.catalogue.cases import inbound, node
from tests.mutants.mutant import Patches, Tier

TIER = Tier("reading")


@TIER.fault(
    inbound("coalesce.py::test_the_earlier_ones_are_a_list_and_the_last_stands_in_full_once"),
    lines=(97,),
)
def digests_do_not_say_who_is_meant(patch: Patches) -> None:
    """Ten messages, one of them a question to the reader: it reads as talk among others."""
    head = coalesce._head

    def plain(one: Constituent) -> str:
        return head(one).removesuffix(f" · {TO_YOU}")

    patch.set(coalesce, "_head", plain)


@TIER.fault(
    node("work_items.py::test_an_item_goes_along_with_a_question_its_answer_and_a_run"),
    lines=(167,),
)
def questions_are_charged_to_nobody(patch: Patches) -> None:
    """What a colleague does for an issue costs the issue nothing."""
    asker_of = turn_run.asker_of

    def alone(turn: Turn, trace: Trace) -> Asker:
        return replace(asker_of(turn, trace), work_item=None)

    patch.set(turn_run, "asker_of", alone)


@TIER.fault(
    node("work_items.py::test_an_item_goes_along_with_a_question_its_answer_and_a_run"),
    lines=(167,),
)
def resumed_turns_are_charged_anew(patch: Patches) -> None:
    """A turn that goes on from its run is told apart from the one that it was."""
    charge_of = build_turn.charge_of

    def anew(constituents: Sequence[Constituent]) -> Charge:
        charge = charge_of(constituents)
        return NOTHING if charge.basis == "resume" else charge

    patch.set(build_turn, "charge_of", anew)


@TIER.fault(
    node("replays.py::test_a_dead_letter_runs_although_the_ledger_holds_its_event"),
    lines=(180,),
)
def replays_leave_the_ledger_as_it_is(patch: Patches) -> None:
    """The replay is reported as done, and its message is dropped as worked."""
    patch.set(dead_letters, "_held_against", lambda letter, event: [])
