"""What one node of the fleet does for all of them: each duty under a lease of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from actors.duty import DutySpec
from actors.fleet import Opening
from actors.machines.placement import WORKERS, Demand
from actors.tenure import WORKER, Tenure
from crewlet.node.retire import Retirement
from crewlet.node.shared_fleet import SharedFleet
from crewlet.node.view import NodeView
from crewlet.schedule.scheduler import Scheduler

Run = Callable[[Tenure], Coroutine[Any, Any, None]]
"""Does the duty until it is cancelled; asks its tenure before each act that a second doer must
not do too."""

ANY_WORKER: Final = Demand(role=WORKERS)


class Duties:
    """By name; they are done by nodes of the role `workers`."""

    def __init__(self, runs: Mapping[str, Run]) -> None:
        self._runs = {WORKER + name: run for name, run in runs.items()}

    def openings(self) -> list[Opening]:
        return [Opening(name, ANY_WORKER) for name in self._runs]

    def spec(self, name: str) -> DutySpec | None:
        """Of the duty that goes by `worker:NAME`; None where it is none of ours."""
        run = self._runs.get(name)
        return None if run is None else DutySpec(name, run)


def duties_of(node: NodeView, fleet: SharedFleet, more: Mapping[str, Run]) -> Duties:
    """All of them, as this node would do them: it retires seats, fires schedules, and whatever
    else there is by name."""
    store, clock = node.broker.store, node.clock
    scheduler = Scheduler(lambda: node.company, node.queue, store, clock, node.node_id)
    retirement = Retirement(node, fleet)
    return Duties({**more, "retirement": retirement.run, "scheduler": scheduler.run})
