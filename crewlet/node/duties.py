"""What one node of the fleet does for all of them: each duty under a lease of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from actors.duty import DutySpec
from actors.fleet import Opening
from actors.machines.placement import WORKERS, Demand
from actors.tenure import WORKER, Tenure

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
