"""Fewer decisions that still break the same promise: delta debugging over a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from actors.simulation.faults import Decision, Plan

MOST_RUNS: Final = 200
Fails = Callable[[Plan], bool]
"""Play the plan; True where it still breaks the promise in question."""


def shrink(
    plan: Plan,
    fails: Fails,
    *,
    most_runs: int = MOST_RUNS,
    progress: Callable[[int], None] = lambda left: None,
) -> Plan:
    """The smallest plan found. The seed stays, so that everything else is as it was; the result
    fails, and taking away any one of its decisions lets it pass (unless the runs were used up).
    `progress` is told how many decisions are left."""
    runs = [most_runs]

    def still(decisions: Sequence[Decision]) -> bool:
        if runs[0] <= 0:
            return False
        runs[0] -= 1
        return fails(plan.only(decisions))

    decisions, parts = list(plan.decisions), 2
    while decisions and runs[0] > 0:
        smaller = _without_a_part(decisions, min(parts, len(decisions)), still)
        if smaller is not None:
            decisions, parts = smaller, max(2, parts - 1)
            progress(len(decisions))
        elif parts >= len(decisions):
            break
        else:
            parts = min(len(decisions), parts * 2)
    return plan.only(decisions)


def _without_a_part(
    decisions: list[Decision], parts: int, still: Callable[[Sequence[Decision]], bool]
) -> list[Decision] | None:
    """The list without one of its `parts`, where that still fails; the late ones go first."""
    size = -(-len(decisions) // parts)
    for begin in reversed(range(0, len(decisions), size)):
        rest = decisions[:begin] + decisions[begin + size :]
        if still(rest):
            return rest
    return None
