"""The life of our actor's cell: its incarnations, what supervision makes of a failure, its end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from thespian.actors import ChildActorExited

from actors.system.address import Address
from actors.system.cell import Cell, State
from actors.system.messages import ChildFailed
from actors.system.running_cell import NONE_YET, RunningCell
from actors.system.supervision import Action, Intensity, Supervision
from actors.system.token import Notice, Token
from actors.system.vocabulary import child_exited

if TYPE_CHECKING:
    from actors.system.actor import Actor
    from actors.system.base import AsyncioSystemBase

EFFECT_GRACE_S: Final = 5.0
"""Seconds that a cancelled effect has to end before its actor goes without it."""


class ActorCell(RunningCell):
    """One actor from its birth to its end. `grace` is the one deadline it may wait for: that
    of cancelled effects, or the backoff of a restart."""

    __slots__ = ("args", "grace", "intensity", "rule")

    def __init__(
        self,
        base: AsyncioSystemBase,
        parent: Cell | None,
        cls: type[Actor],
        args: tuple[object, ...],
        name: str,
        rule: Supervision,
    ) -> None:
        super().__init__(base, parent, cls, name)
        self.args = args
        self.rule = rule
        self.intensity: Intensity | None = None
        self.grace: asyncio.TimerHandle | None = None

    def be_born(self) -> None:
        """The handler that spawned this child has returned."""
        if self.parent is not None:
            self.parent.adopt(self)
        self.base.signal(self.start)

    def start(self) -> None:
        """Make an incarnation and run its `pre_start`. System work."""
        if self.state is not State.STARTING and self.state is not State.WAITING:
            return
        if self._guarded(self._make):
            self.run()

    def _make(self) -> None:
        actor = self.cls.__new__(self.cls)
        actor._myRef = self
        self.actor = actor
        try:
            actor.__init__(*self.args)  # type: ignore[misc]
        except BaseException:
            self.actor = None
            raise
        actor.pre_start()

    def fail(self, reason: str) -> None:
        """Stand still until the supervision has decided. An end that is under way goes on."""
        if self.state in (State.RUNNING, State.STARTING, State.WAITING):
            started = self.state is State.RUNNING
            self.open = False
            self.state = State.FAILED
            self.base.signal(partial(self._judge, reason, started))

    def _judge(self, reason: str, started: bool) -> None:
        if self.state is not State.FAILED:
            return
        rule = self.rule
        action: Action = rule.on_failure
        if action == "restart":
            if self.intensity is None:
                self.intensity = Intensity()
            if not self.intensity.admit(rule, self.base.loop.time()):
                action, reason = rule.when_exceeded, f"restarted too often: {reason}"
        elif action == "resume" and not started:
            action = "stop"
        parent = self.parent
        if isinstance(parent, ActorCell) and ChildFailed in parent.table:
            notice = ChildFailed(self.address, self.name, reason, action)
            parent.enqueue(Notice(parent, notice), self.address)
        if rule.scope == "all_for_one" and action in ("restart", "stop"):
            self._take_siblings_along(action)
        self._carry_out(action, reason)

    def _take_siblings_along(self, action: Action) -> None:
        siblings = self.parent.children if self.parent is not None else None
        for sibling in list((siblings or {}).values()):
            if sibling is not self and isinstance(sibling, ActorCell):
                sibling._carry_out(action, "sibling")

    def _carry_out(self, action: Action, reason: str) -> None:
        if action == "restart":
            self.restart(reason)
        elif action == "resume":
            self.run()
        else:
            parent = self.parent
            self.stop(reason)
            if action == "escalate" and parent is not None:
                parent.child_escalated(reason)

    def child_escalated(self, reason: str) -> None:
        self.fail(f"child failed: {reason}")

    def restart(self, reason: str) -> None:
        """Take this incarnation apart; a new one follows after the backoff."""
        if self.state not in (State.RUNNING, State.FAILED):
            return
        self.reason = reason
        self.state = State.RESTARTING
        self.open = False
        self.restarts += 1
        self.tear_down()

    def settle(self) -> None:
        """As any cell; a restart goes on with the backoff."""
        super().settle()
        if self.state is State.RESTARTING and not self.children and not self.effects:
            self.state = State.WAITING
            intensity = self.intensity or Intensity()
            delay = intensity.backoff(self.rule, self.base.chance)
            self.grace = self.base.loop.call_later(delay, self.base.signal, self.start)

    def withdraw(self) -> None:
        for timer in self.timers.values():
            timer.withdraw()
        for watch in self.watches.values():
            watch.live = False
            watch.address.endpoint.unwatched_by(watch)
        self.timers = self.watches = NONE_YET
        if self.grace is not None:
            self.grace.cancel()
            self.grace = None

    def at_rest(self) -> bool:
        """Cancel the effects once; after the grace go without those that will not end."""
        if self.effects and self.grace is None:
            for effect in list(self.effects):
                effect.cancel()
            self.grace = self.base.loop.call_later(EFFECT_GRACE_S, self._abandon_effects)
        return not self.effects

    def _abandon_effects(self) -> None:
        """Their coroutines swallowed the cancellation; what they still bring is discarded."""
        self.base.log.error(
            "effects_abandoned", extra={"actor": str(self.address), "count": len(self.effects)}
        )
        self.effects = NONE_YET
        self.settle()

    def close(self) -> None:
        if self.grace is not None:
            self.grace.cancel()
            self.grace = None
        if self.actor is not None:
            self._guarded(self.actor.post_stop)
            self.actor = None

    def bury_mail(self, message: object, sender: Address) -> None:
        if not isinstance(message, Token):
            super().bury_mail(message, sender)

    def child_gone(self, child: Cell) -> None:
        super().child_gone(child)
        if ChildActorExited in self.table and self.state is not State.STOPPING:
            notice = Notice(self, child_exited(child.address))
            self.enqueue(notice, self.base.system_address)
