"""A duty: something that one node of the fleet does at a time, as long as it holds its lease.

It is claimed, given up and fenced like a seat (`worker:NAME`); it has no mailbox, but a coroutine.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog
from msgspec import Struct

from actors.messages import CutShort, Doubt, Drain, Drained, Establish, Established
from actors.system import Actor, Address, EffectEnded, handles
from actors.tenure import Tenure

AGAIN_S: Final = 5.0
"""Before a duty that ended, or raised, is begun again."""

log = structlog.get_logger(__name__)


class DutySpec(Struct, frozen=True):
    """`run` does the duty until it is cancelled; it asks its tenure before each act that a second
    doer must not do too: `may_start` for what may wait, `may_settle` for what must end."""

    name: str
    run: Callable[[Tenure], Coroutine[Any, Any, None]]


class DutyPlan(Struct):
    """What outlives an incarnation."""

    spec: DutySpec
    tenure: Tenure | None = None
    drainer: Address | None = None


class _Again(Struct, frozen=True):
    pass


class DutyActor(Actor):
    """Runs a duty; its parent is the seat supervisor."""

    def __init__(self, plan: DutyPlan) -> None:
        super().__init__()
        self._plan = plan
        self._running = False

    def pre_start(self) -> None:
        if self._plan.drainer is not None:
            self._report()
        elif self._plan.tenure is not None:
            self.timer("again", AGAIN_S, _Again())

    @handles(Establish)
    def on_establish(self, wanted: Establish, sender: Address) -> None:
        self._plan.tenure = wanted.tenure
        self.tell(sender, Established(self._plan.spec.name))
        self._begin()

    @handles(_Again)
    def on_again(self, _: _Again, sender: Address) -> None:
        self._begin()

    def _begin(self) -> None:
        tenure = self._plan.tenure
        if tenure is not None and self._plan.drainer is None and not self._running:
            self._running = True
            self.effect(self._plan.spec.run(tenure), tag="duty")

    @handles(EffectEnded)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        self._running = False
        if self._plan.drainer is not None:
            self._report()
            return
        if ended.error is not None:
            log.error("duty_failed", duty=self._plan.spec.name, error=repr(ended.error)[:200])
        self.timer("again", AGAIN_S, _Again())

    @handles(Drain, urgent=True)
    def on_drain(self, _: Drain, sender: Address) -> None:
        self._plan.drainer = sender
        self.cancel_timer("again")
        if self._running:
            self.cancel("duty")
        else:
            self._report()

    @handles(CutShort, urgent=True)
    def on_cut(self, _: CutShort, sender: Address) -> None:
        """It was cancelled already; there is no harder word."""

    @handles(Doubt, urgent=True)
    def on_doubt(self, _: Doubt, sender: Address) -> None:
        """Its tenure says so itself."""

    def _report(self) -> None:
        asker, self._plan.drainer = self._plan.drainer, None
        if asker is not None:
            self.tell(asker, Drained(self._plan.spec.name, ()))
