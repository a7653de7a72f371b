"""Our actor class: typed dispatch, acts that are committed when the handler returns."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import thespian.actors
from thespian.actors import ActorExitRequest

from actors.ports import Clock
from actors.system.actor_cell import ActorCell
from actors.system.acts import BeginEffect, Birth
from actors.system.address import Address
from actors.system.cell import State
from actors.system.running_cell import Handler
from actors.system.supervision import RESTART, Supervision
from actors.system.vocabulary import StatusRequest

if TYPE_CHECKING:
    from actors.system.base import AsyncioSystemBase

F = TypeVar("F", bound=Callable[..., None])

ENDING: Final = (State.STOPPING, State.RESTARTING)

SYSTEM_TYPES: frozenset[type] = frozenset({ActorExitRequest, StatusRequest})
"""What a cell serves before any mail, for every class."""


class OutsideHandler(RuntimeError):
    """An act was asked for outside the actor's own handler: from an effect, or another actor."""


def handles(*types: type, urgent: bool = False) -> Callable[[F], F]:
    """Mark a method `(self, message, sender) -> None` as the handler of these message types.

    The exact type decides, not a base class. `urgent` types are handled before all other mail
    of the actor and are exempt from the mailbox's bound: for brakes and questions.
    """

    def mark(method: F) -> F:
        method.__dict__["_handles"] = (types, urgent)
        return method

    return mark


class Actor(thespian.actors.Actor):
    """A Thespian actor that runs each message once.

    Subclasses mark handlers with `@handles(Type)`. Inside a handler, the constructor and the
    hooks, the acts below are collected; they are carried out, in order, when it returns. If
    it raises, nothing of it happens: no send, no effect, no child. The failure goes to the
    supervision given with `spawn`, and the message is not run again.
    """

    handlers: ClassVar[dict[type, Handler]] = {}
    urgent_types: ClassVar[frozenset[type]] = SYSTEM_TYPES
    _handled: ClassVar[dict[type, tuple[str, bool]]] = {}
    _myRef: ActorCell

    def __init__(self) -> None:
        """Nothing to do. The context is there already; acts are good in a constructor too."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Build the dispatch table: inherited entries first, names resolved on this class, so
        that overriding a handler needs no second mark."""
        super().__init_subclass__(**kwargs)
        handled = dict(cls._handled)
        for name, member in vars(cls).items():
            for type_ in getattr(member, "_handles", ((), False))[0]:
                handled[type_] = (name, member._handles[1])
        cls._handled = handled
        cls.handlers = {type_: getattr(cls, name) for type_, (name, _) in handled.items()}
        cls.urgent_types = SYSTEM_TYPES | {t for t, (_, urgent) in handled.items() if urgent}

    # -- what subclasses may say

    def pre_start(self) -> None:
        """Called once an incarnation is made; a failure here counts as one of a handler."""

    def post_stop(self) -> None:
        """Called when an incarnation ends, after its children and effects are gone. Sends are
        carried out, nothing else can begin; a failure is logged and changes nothing."""

    def unhandled(self, message: object, sender: Address) -> None:
        """A message of a type without a handler: a dead letter, unless overridden."""
        cell = self._myRef
        cell.base.dead_letter(cell.address, message, sender, "unhandled")

    # -- the context

    @property
    def me(self) -> Address:
        """This actor's address, the same through all restarts."""
        return self._myRef.address

    @property
    def parent(self) -> Address | None:
        """The parent's address; None at the top."""
        parent = self._myRef.parent
        return None if parent is None else parent.address

    @property
    def name(self) -> str:
        """The name given with `spawn`, or ''."""
        return self._myRef.name

    @property
    def clock(self) -> Clock:
        """The system's clock."""
        return self._myRef.base.clock

    @property
    def system(self) -> AsyncioSystemBase:
        """The system this actor lives in."""
        return self._myRef.base

    # -- acts

    def tell(self, to: Address, message: object) -> None:
        """Send a message. To an actor that is gone it becomes a dead letter."""
        cell = self._myRef
        base = cell.base
        if base.current is not cell:
            raise OutsideHandler("tell: only inside the actor's own handler")
        if to.__class__ is not Address:
            to = base.resolve(to)
        base.outbox.append((to, message))

    def spawn(
        self,
        cls: type[Actor],
        *args: object,
        name: str = "",
        supervision: Supervision = RESTART,
    ) -> Address:
        """Make a child. Its address is good at once; it is constructed with `args`, anew at
        every restart, after this handler has returned."""
        cell = self._living("spawn")
        child = ActorCell(cell.base, cell, cls, args, name, supervision)
        cell.base.outbox.append((None, Birth(child)))
        return child.address

    def stop(self, address: Address | None = None) -> None:
        """End this actor, or one of its children. Children go first; mail that waits becomes
        dead letters. Raises ValueError for an address that is neither."""
        cell = self._inside("stop")
        if address is None or address is cell.address:
            target = cell.stop
        else:
            end = address.endpoint
            if getattr(end, "parent", cell) is not cell:
                raise ValueError(f"{address} is no child of {cell.address}")
            target = getattr(end, "stop", _nothing)
        self._act(partial(cell.base.signal, partial(target, "stop")))

    def watch(self, address: Address) -> None:
        """Be told `Terminated(address, reason)` when that actor is gone; at once if it is."""
        cell = self._living("watch")
        self._act(partial(cell.begin_watch, address))

    def effect(self, coroutine: Coroutine[Any, Any, Any], tag: object) -> None:
        """Run a coroutine beside the mailbox. Its end comes back as `EffectEnded(tag, ...)`,
        to this incarnation only. It is cancelled when the incarnation ends."""
        cell = self._myRef
        base = cell.base
        if base.current is not cell or cell.state in ENDING:
            coroutine.close()
            self._living("effect")
        base.outbox.append((None, BeginEffect(cell, coroutine, tag)))

    def cancel(self, tag: object) -> None:
        """Cancel the running effects of that tag; their `EffectEnded` still arrives."""
        self._act(partial(self._inside("cancel").cancel_effects, tag))

    def timer(self, name: str, after_s: float, message: object) -> None:
        """Send `message` to this actor in `after_s` seconds. A timer of the same name is
        replaced, also one that is due and waits in the mailbox."""
        cell = self._living("timer")
        self._act(partial(cell.set_timer, name, float(after_s), message))

    def cancel_timer(self, name: str) -> None:
        """Withdraw a timer, also one that is due and waits in the mailbox."""
        self._act(partial(self._inside("cancel_timer").cancel_timer, name))

    # -- Thespian's face

    def receiveMessage(self, message: object, sender: Address) -> None:
        """Thespian's entry point: runs one message. Never raises."""
        self._myRef.receive(message, sender)

    def __str__(self) -> str:
        return f"{type(self).__name__} {self._myRef.address}"

    def _inside(self, act: str) -> ActorCell:
        cell = self._myRef
        if cell.base.current is not cell:
            raise OutsideHandler(f"{act}: only inside the actor's own handler")
        return cell

    def _living(self, act: str) -> ActorCell:
        cell = self._inside(act)
        if cell.state in ENDING:
            raise RuntimeError(f"{act}: this incarnation ends, it can begin nothing")
        return cell

    def _act(self, act: Callable[[], None]) -> None:
        self._myRef.base.outbox.append((None, act))


def _nothing(reason: str) -> None:
    """What stopping an actor that is gone comes to."""
