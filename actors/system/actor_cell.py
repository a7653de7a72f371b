"""The cell of our actor class: one run a message, committed acts, supervision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from thespian.actors import ActorExitRequest, ChildActorExited

from actors.system.acts import Act
from actors.system.address import Address
from actors.system.cell import Cell, State
from actors.system.dispatcher import MESSAGES_A_TURN
from actors.system.messages import ChildFailed
from actors.system.status import actor_status
from actors.system.supervision import Action, Intensity, Supervision
from actors.system.token import Effect, Timer, Token, Watch
from actors.system.vocabulary import StatusRequest, child_exited

if TYPE_CHECKING:
    from actors.system.actor import Actor
    from actors.system.base import AsyncioSystemBase

EFFECT_GRACE_S: Final = 5.0
"""Seconds that a cancelled effect has to end before its actor goes without it."""

Handler = Callable[[Any, Any, Address], None]
"""A handler as the table holds it: a plain function of the class."""

NONE_YET: Final[dict[Any, Any]] = {}
"""Stands for an empty dict in idle cells; never written to."""


class ActorCell(Cell):
    """Runs one `Actor` class. `actor` is None between two incarnations."""

    __slots__ = (
        "actor",
        "args",
        "cls",
        "effects",
        "grace",
        "intensity",
        "restarts",
        "rule",
        "table",
        "timers",
        "urgent",
        "watches",
    )

    def __init__(
        self,
        base: AsyncioSystemBase,
        parent: Cell | None,
        cls: type[Actor],
        args: tuple[object, ...],
        name: str,
        rule: Supervision,
    ) -> None:
        super().__init__(base, parent, name or cls.__name__, name)
        self.cls = cls
        self.args = args
        self.rule = rule
        self.table: dict[type, Handler] = cls.handlers
        self.urgent: frozenset[type] = cls.urgent_types
        self.actor: Actor | None = None
        self.timers: dict[str, Timer] = NONE_YET
        self.effects: dict[Effect, None] = NONE_YET
        self.watches: dict[Address, Watch] = NONE_YET
        self.intensity: Intensity | None = None
        self.grace: asyncio.TimerHandle | None = None
        self.restarts = 0

    # -- mail

    def push(self, message: object, sender: Address) -> None:
        if message.__class__ in self.urgent:
            self._push_urgent(message, sender)
            return
        inbox, base = self.inbox, self.base
        if len(inbox) + len(self.batch) >= base.mailbox_bound:
            base.dead_letter(self.address, message, sender, "full")
            return
        inbox.append((message, sender))
        if not self.scheduled and self.open:
            self.scheduled = True
            base.ready.append(self)
            if not base.armed:
                base.arm()

    def _push_urgent(self, message: object, sender: Address) -> None:
        """Exits and status requests are the system's; the rest goes before all other mail."""
        if isinstance(message, ActorExitRequest):
            self.base.signal(partial(self.stop, "exit"))
        elif isinstance(message, StatusRequest):
            self.base.signal(partial(self._tell_status, sender))
        else:
            self.base.signal(partial(self._run_urgent, message, sender))

    def _tell_status(self, sender: Address) -> None:
        timers = [timer.handle.when() for timer in self.timers.values()]
        sender.endpoint.push(actor_status(self, timers), self.address)

    def _run_urgent(self, message: object, sender: Address) -> None:
        """Handle an urgent message now. While no incarnation runs it waits at the head."""
        if self.open:
            self.receive(message, sender)
        elif self.state is State.STOPPING or self.state is State.GONE:
            self.address.endpoint.push(message, sender)
        else:
            self.batch.append((message, sender))

    def turn(self) -> None:
        """The inner loop of the system: written out, without calls that can be spared."""
        if not self.open or not (self.batch or self.inbox):
            self.scheduled = False
            return
        base = self.base
        outbox, find, batch, actor = base.outbox, self.table.get, self.batch, self.actor
        base.current = self
        for _ in range(MESSAGES_A_TURN):
            if not batch:
                batch = self.inbox
                self.batch, self.inbox = batch, self.batch
                batch.reverse()
            message, sender = batch.pop()
            try:
                handler = find(message.__class__)
                if handler is None:
                    self._dispatch_other(message, sender)
                else:
                    handler(actor, message, sender)
            except BaseException as error:
                self._handler_raised(error)
                self.scheduled = False
                break
            if outbox:
                me = self.address
                for to, act in outbox:
                    if to is None:
                        act()
                    else:
                        to.endpoint.push(act, me)
                outbox.clear()
            if not batch and not self.inbox:
                self.scheduled = False
                break
            if base.signals or base.time() >= base.until:
                base.ready.append(self)
                break
        else:
            base.ready.append(self)
        base.current = None

    def receive(self, message: object, sender: Address) -> None:
        """Run one message outside a turn, with all that belongs to it. Never raises."""
        self._guarded(partial(self.dispatch, message, sender))

    def dispatch(self, message: object, sender: Address) -> None:
        handler = self.table.get(message.__class__)
        if handler is None:
            self._dispatch_other(message, sender)
        elif self.actor is not None:
            handler(self.actor, message, sender)

    def _dispatch_other(self, message: object, sender: Address) -> None:
        if isinstance(message, Token):
            if message.live:
                self.dispatch(message.unwrap(), sender)
        elif self.actor is not None:
            self.actor.unhandled(message, sender)

    def _guarded(self, work: Callable[[], None]) -> bool:
        """Run `work` as a handler: commit what it did, or drop it and fail. False: it failed.
        Inside this actor's own handler it is a part of that one."""
        base = self.base
        if base.current is self:
            work()
            return True
        previous, base.current = base.current, self
        held = base.outbox.copy()
        base.outbox.clear()
        try:
            work()
        except BaseException as error:
            self._handler_raised(error)
            return False
        else:
            self.commit()
            return True
        finally:
            base.current = previous
            base.outbox.extend(held)

    def commit(self) -> None:
        """Carry out what the handler wanted, in its order."""
        for to, act in self.base.outbox:
            if to is None:
                act()
            else:
                to.endpoint.push(act, self.address)
        self.base.outbox.clear()

    # -- acts, as the outbox holds them

    def begin_effect(self, coroutine: Coroutine[Any, Any, object], tag: object) -> None:
        if self.effects is NONE_YET:
            self.effects = {}
        base = self.base
        task = base.loop.create_task(coroutine, context=base.context.copy())
        self.effects[Effect(self, task, tag)] = None

    def cancel_effects(self, tag: object) -> None:
        for effect in list(self.effects):
            if effect.live and effect.tag == tag:
                effect.task.cancel()

    def effect_ended(self, effect: Effect) -> None:
        self.effects.pop(effect, None)
        if effect.live:
            self.enqueue(effect, self.address)
        elif self.state is State.STOPPING or self.state is State.RESTARTING:
            self.settle()

    def set_timer(self, name: str, after_s: float, message: object) -> None:
        if self.timers is NONE_YET:
            self.timers = {}
        self.cancel_timer(name)
        self.timers[name] = Timer(self, name, after_s, message)

    def cancel_timer(self, name: str) -> None:
        timer = self.timers.pop(name, None)
        if timer is not None:
            timer.withdraw()

    def begin_watch(self, address: Address) -> None:
        if self.watches is NONE_YET:
            self.watches = {}
        if address not in self.watches:
            self.watches[address] = watch = Watch(self, address)
            address.endpoint.watched_by(watch)

    # -- the life

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

    def _handler_raised(self, error: BaseException) -> None:
        """Undo what the handler asked for, and report. Ctrl-C is not the handler's failure."""
        outbox = self.base.outbox
        acts = [act for to, act in outbox if to is None and isinstance(act, Act)]
        outbox.clear()
        for act in acts:
            act.undo()
        reason = describe(error)
        self.base.log.warning(
            "actor_failed", extra={"actor": str(self.address), "kind": self.kind, "reason": reason}
        )
        self.fail(reason)
        if isinstance(error, KeyboardInterrupt):
            self.scheduled = False
            raise error

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
            parent.enqueue(notice, self.address)
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
                effect.live = False
                effect.task.cancel()
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
            self.enqueue(child_exited(child.address), self.base.system_address)

    # -- figures

    @property
    def kind(self) -> str:
        return self.cls.__name__

    def figures(self) -> tuple[int, int, int]:
        return self.restarts, len(self.effects), len(self.timers)


def describe(error: BaseException) -> str:
    """The reason of a failure. A `__str__` that raises must not break the dispatcher."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
