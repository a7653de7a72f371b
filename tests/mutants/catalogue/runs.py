"""Faults of long runs: holds that are not taken, rows that prove nothing, answers that get lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crewlet.inbound.steps import answers
from crewlet.runs.ending import Ending
from crewlet.runs.live import Live
from crewlet.runs.row import Adopted, HandedBack, Reply, Run
from crewlet.runs.runs import Runs
from tests.mutants.catalogue.cases import node, runs
from tests.mutants.mutant import Patches, Tier

TIER = Tier("runs")


@TIER.fault(
    node("runs_on_the_twin.py::test_a_run_goes_with_its_seat_to_another_node"), lines=(137,)
)
def a_seat_is_taken_without_its_holds(patch: Patches) -> None:
    """The new node of a held seat works its mail beside the run."""

    def none(runs: Runs, handle: str) -> Sequence[str]:
        return ()

    patch.set(Runs, "holds_of", none)


@TIER.fault(
    node("runs_crash.py::test_a_run_whose_turn_was_not_recorded_is_not_begun_again"),
    lines=(137,),
)
def a_row_proves_nothing(patch: Patches) -> None:
    """A node dies with the row open and the completion not recorded: the work begins again."""

    async def nothing(ending: Ending, run: Run) -> None:
        return None

    patch.set(Ending, "worked", nothing)


@TIER.fault(
    runs("runs.py::TestANodeThatLostItsSeat::test_its_row_stays_where_its_successor_has_it"),
    lines=(137,),
)
def taken_over_without_a_write(patch: Patches) -> None:
    """A node that had lost its seat takes the run away from the one that has it."""
    change = Live.change

    async def untouched(
        live: Live, handle: str, run_id: str, given: Any, *, touch: bool = False
    ) -> Any:
        if isinstance(given, Adopted):
            kept = await live._store.get(handle, run_id)
            assert kept is not None
            return live.know(kept)
        return await change(live, handle, run_id, given, touch=touch)

    patch.set(Live, "change", untouched)


@TIER.fault(
    node("runs_on_the_twin.py::test_an_answer_that_nobody_took_is_mail_again"), lines=(143,)
)
def an_answer_ends_with_its_run(patch: Patches) -> None:
    """A person's message that a run had taken up is gone with the run."""

    async def dropped(ending: Ending, run: Run, reply: Reply) -> None:
        await ending._live.change(run.handle, run.run_id, HandedBack())

    patch.set(Ending, "_hand_back", dropped)


@TIER.fault(
    runs("runs.py::TestControl::test_the_ledger_has_an_answer_before_its_worker_has_it"),
    lines=(144,),
)
def an_answer_leaves_unrecorded(patch: Patches) -> None:
    """Its delivery comes again after its run has taken it, and is worked as a second message."""

    async def yes(ending: Ending, run: Run, reply: Reply) -> bool:
        return True

    patch.set(Ending, "leaves", yes)


@TIER.fault(
    runs("answers.py::test_with_five_deliveries_left_it_goes_the_ordinary_way"), lines=(142,)
)
def an_answer_is_offered_to_the_last(patch: Patches) -> None:
    """A message that no run could be asked about is a dead letter."""
    patch.set(answers, "RESERVE", -1)


@TIER.fault(
    node("runs_on_the_twin.py::test_the_hold_goes_with_the_last_run_that_holds"),
    lines=(137,),
)
def a_parked_run_stands_for_all(patch: Patches) -> None:
    """One run that asks lifts the hold of another that goes on."""

    def careless(live: Live, handle: str) -> bool:
        return bool(live.of(handle)) and all(run.holds for run in live.of(handle))

    patch.set(Live, "holds", careless)
