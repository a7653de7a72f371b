"""The running part of our actor's cell: one run a message, acts committed at its return."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from thespian.actors import ActorExitRequest

from actors.system.acts import Act
from actors.system.address import Address
from actors.system.cell import Cell, State
from actors.system.dispatcher import MESSAGES_A_TURN
from actors.system.effect import Effect
from actors.system.status import actor_status
from actors.system.token import Timer, Token, Watch
from actors.system.vocabulary import StatusRequest

if TYPE_CHECKING:
    from actors.system.actor import Actor
    from actors.system.base import AsyncioSystemBase

Handler = Callable[[Any, Any, Address], None]
"""A handler as the table holds it: a plain function of the class."""

A_TURN: Final = (None,) * MESSAGES_A_TURN
"""To loop over: a range would be made anew for each message of a conversation."""

NONE_YET: Final[dict[Any, Any]] = {}
"""Stands for an empty dict in idle cells; never written to."""


class RunningCell(Cell):
    """Runs the messages of one `Actor`. `actor` is None between two incarnations, and
    `restarts` numbers them: what an earlier one began is discarded when it comes."""

    __slots__ = (
        "actor",
        "cls",
        "effects",
        "restarts",
        "table",
        "timers",
        "urgent",
        "urgent_mail",
        "watches",
    )

    def __init__(
        self, base: AsyncioSystemBase, parent: Cell | None, cls: type[Actor], name: str
    ) -> None:
        super().__init__(base, parent, name or cls.__name__, name)
        self.cls = cls
        self.table: dict[type, Handler] = cls.handlers
        self.urgent: frozenset[type] = cls.urgent_types
        self.urgent_mail: list[tuple[object, Address]] | None = None
        self.actor: Actor | None = None
        self.timers: dict[str, Timer] = NONE_YET
        self.effects: dict[Effect, None] = NONE_YET
        self.watches: dict[Address, Watch] = NONE_YET
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
        """Handle an urgent message now. While no incarnation runs it waits for one."""
        if self.open:
            self.receive(message, sender)
        elif self.state is State.STOPPING or self.state is State.GONE:
            self.address.endpoint.push(message, sender)
        elif self.urgent_mail is None:
            self.urgent_mail = [(message, sender)]
        else:
            self.urgent_mail.append((message, sender))

    def run(self) -> None:
        super().run()
        if self.urgent_mail is not None:
            for message, sender in self.urgent_mail:
                self.base.signal(partial(self._run_urgent, message, sender))
            self.urgent_mail = None

    def turn(self) -> None:
        """The inner loop of the system: written out, without calls that can be spared."""
        if not self.open or not (self.batch or self.inbox):
            self.scheduled = False
            return
        base = self.base
        outbox, find, batch, actor = base.outbox, self.table.get, self.batch, self.actor
        base.current = self
        for _ in A_TURN:
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
            if message.live and message.incarnation == self.restarts:
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

    def _handler_raised(self, error: BaseException) -> None:
        """Undo what the handler asked for, and report. Ctrl-C is not the handler's failure."""
        outbox = self.base.outbox
        acts = [act for to, act in outbox if to is None and isinstance(act, Act)]
        outbox.clear()
        for act in acts:
            act.undo()
        reason = describe(error)
        self.base.report_failure(self, error)
        self.fail(reason)
        if isinstance(error, KeyboardInterrupt):
            self.scheduled = False
            raise error

    def fail(self, reason: str) -> None:
        """A handler, constructor or hook raised; nothing of what it asked for was done."""
        raise NotImplementedError

    # -- acts, as the outbox holds them

    def begin_effect(self, coroutine: Coroutine[Any, Any, object], tag: object) -> None:
        if self.effects is NONE_YET:
            self.effects = {}
        effect = Effect(self, coroutine, tag)
        self.effects[effect] = None
        effect.begin()

    def cancel_effects(self, tag: object) -> None:
        for effect in list(self.effects):
            if effect.tag == tag:
                effect.cancel()

    def effect_ended(self, effect: Effect) -> None:
        """An end waits for it, or its incarnation hears of it, or nobody does."""
        self.effects.pop(effect, None)
        if self.state is State.STOPPING or self.state is State.RESTARTING:
            self.settle()
        elif self.state is not State.GONE and effect.incarnation == self.restarts:
            self.enqueue(effect, self.address)

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
