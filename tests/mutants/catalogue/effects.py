"""Faults of the tasks in which effects run: what one leaves behind and the next finds."""

from __future__ import annotations

from collections.abc import Callable

from actors.system.effect import Effect, Worker
from tests.mutants.catalogue.cases import system
from tests.mutants.mutant import Patches, Tier

TIER = Tier("effects")


@TIER.fault(
    system("lent_tasks.py::test_no_effect_sees_the_variables_of_the_one_before"), lines=(202,)
)
def variables_reach_the_next(patch: Patches) -> None:
    """A task that is lent keeps its context: a turn runs under the trace of another one."""
    begin = Worker._begin

    def keep(worker: Worker, heir: Effect) -> tuple[Callable[..., object], object]:
        context = worker._context
        begun = begin(worker, heir)
        worker._context = context
        return begun

    patch.set(Worker, "_begin", keep)


@TIER.fault(
    system("lent_tasks.py::test_a_task_in_which_an_effect_waited_takes_no_other"), lines=(80,)
)
def waited_and_lent(patch: Patches) -> None:
    """A task is lent although its effect has waited: who still holds it cancels a stranger."""
    end = Worker._end

    def lend(worker: Worker, effect: Effect) -> Effect | None:
        worker._waited = False
        return end(worker, effect)

    patch.set(Worker, "_end", lend)


@TIER.fault(system("lent_tasks.py::test_the_loop_has_its_turn_after_so_many"), lines=(80,))
def the_loop_is_kept(patch: Patches) -> None:
    """An actor that begins one quick effect after the other starves the loop's I/O and timers."""
    end = Worker._end

    def keep(worker: Worker, effect: Effect) -> Effect | None:
        worker._left = 2
        return end(worker, effect)

    patch.set(Worker, "_end", keep)
