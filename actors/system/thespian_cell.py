"""The cell of an unmodified Thespian actor, which keeps Thespian's semantics.

Sends leave at once; a message whose handling raises is tried once more and then returned to
its sender as a PoisonMessage; an exit request is a message among the others.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from thespian.actors import (
    ActorAddress,
    ActorExitRequest,
    ActorSystemMessage,
    ChildActorExited,
    PoisonMessage,
    ThespianWatch,
)

from actors.system.address import Address
from actors.system.cell import Cell, State
from actors.system.dispatcher import MESSAGES_A_TURN
from actors.system.refusal import refuse
from actors.system.status import actor_status
from actors.system.vocabulary import (
    StatusRequest,
    ThespianActor,
    child_exited,
    exit_request,
    hand_over,
    poison,
    readable,
    seconds,
    wakeup,
)

if TYPE_CHECKING:
    from actors.system.base import AsyncioSystemBase

TRIES: Final = 2
"""Times that a message is handed to a Thespian actor before it is poison."""


class ThespianCell(Cell):
    """What a Thespian actor knows as `_myRef`."""

    __slots__ = ("actor", "cls", "globalName", "orphaning", "wakeups", "watched")

    def __init__(
        self, base: AsyncioSystemBase, parent: Cell | None, cls: type[ThespianActor]
    ) -> None:
        super().__init__(base, parent, cls.__name__, "")
        self.cls = cls
        self.actor: ThespianActor | None = None
        self.globalName: str | None = None
        self.wakeups: dict[asyncio.TimerHandle, None] = {}
        self.watched: tuple[int, ...] = ()
        self.orphaning = False

    def construct(self, requirements: dict[str, Any] | None) -> None:
        """Make the instance; raises what its constructor raises."""
        offered = {"capabilities": self.base.capabilities, "requirements": requirements}
        kind: type = self.cls
        wanted = _accepted(kind)
        actor = self.cls(**{name: offered[name] for name in wanted})
        actor.__dict__["_myRef"] = self
        self.actor = actor
        self.run()

    # -- mail

    def push(self, message: object, sender: Address) -> None:
        if self.depth >= self.base.mailbox_bound and not isinstance(message, ActorSystemMessage):
            self.base.dead_letter(self.address, message, sender, "full")
        else:
            self.enqueue(message, sender)

    def turn(self) -> None:
        base = self.base
        base.current = self
        for _ in range(MESSAGES_A_TURN):
            envelope = self.next_envelope() if self.open else None
            if envelope is None:
                self.scheduled = False
                break
            self._handle(*envelope)
            if base.signals or base.time() >= base.until:
                base.ready.append(self)
                break
        else:
            base.ready.append(self)
        base.current = None

    def _handle(self, message: object, sender: Address) -> None:
        if isinstance(message, StatusRequest):
            due = [handle.when() for handle in self.wakeups]
            self.base.post(sender, actor_status(self, due), self.address)
            return
        self._deliver(message, sender)
        if isinstance(message, ActorExitRequest):
            self.orphaning = not message.isRecursive
            self._end("exit")

    def _deliver(self, message: object, sender: Address) -> None:
        """Hand over a message: twice at most, then back to its sender."""
        for _ in range(TRIES):
            actor = self.actor
            if actor is None:
                return
            try:
                self._watch(hand_over(actor, message, sender))
            except (SystemExit, KeyboardInterrupt) as error:
                self._end(type(error).__name__)
                if isinstance(error, KeyboardInterrupt):
                    raise
                return
            except BaseException as error:
                details = traceback.format_exc()
                self.base.report_failure(self, error)
            else:
                return
        if not isinstance(message, PoisonMessage | ChildActorExited) and (
            sender is not self.base.system_address
        ):
            self.base.post(sender, poison(message, details), self.address)

    # -- the end

    def stop(self, reason: str) -> None:
        """An exit from above: the actor hears of it as of any exit request, but at once."""
        if self.state is State.STOPPING or self.state is State.GONE:
            return
        self._deliver(exit_request(), self.base.system_address)
        self._end(reason)

    def _end(self, reason: str) -> None:
        if self.orphaning:
            for child in list((self.children or {}).values()):
                child.parent = None
                self.base.adopt_top(child)
            self.children = None
        super().stop(reason)

    def withdraw(self) -> None:
        for handle in self.wakeups:
            handle.cancel()
        self.wakeups = {}
        self._unwatch()

    def close(self) -> None:
        self.actor = None

    def child_gone(self, child: Cell) -> None:
        super().child_gone(child)
        if self.open:
            self.enqueue(child_exited(child.address), self.base.system_address)

    # -- file descriptors

    def _watch(self, result: object) -> None:
        """Each message says anew which descriptors the actor waits for."""
        if self.watched:
            self._unwatch()
        if isinstance(result, ThespianWatch) and self.open:
            self.watched = tuple(result.filenos)
            for fileno in self.watched:
                self.base.loop.add_reader(fileno, self._ready_to_read, fileno)

    def _ready_to_read(self, fileno: int) -> None:
        self._unwatch()
        self.enqueue(readable([fileno]), self.address)

    def _unwatch(self) -> None:
        for fileno in self.watched:
            self.base.loop.remove_reader(fileno)
        self.watched = ()

    # -- the verbs of `_myRef`

    def createActor(
        self,
        cls: type[ThespianActor] | str,
        requirements: dict[str, Any] | None,
        global_name: str | None,
        source_hash: str | None,
    ) -> Address:
        return self.base.create(self, cls, requirements, global_name, source_hash)

    def actor_send(self, to: ActorAddress, message: object) -> None:
        self.base.post(to, message, self.address)

    def wakeupAfter(self, period: timedelta | float, payload: object) -> None:
        def wake() -> None:
            self.wakeups.pop(handle, None)
            self.enqueue(wakeup(period, payload), self.address)

        handle = self.base.loop.call_later(max(0.0, seconds(period)), wake)
        self.wakeups[handle] = None

    def handleDeadLetters(self, address: Address, enable: bool) -> None:
        self.base._handleDeadLetters(address, enable)

    def updateCapability(self, name: str, value: object) -> None:
        self.base.updateCapability(name, value)

    def actorSystemShutdown(self) -> None:
        self.base.begin_shutdown()

    def registerSourceAuthority(self, address: Address) -> None:
        refuse("sourced loading")

    def notifyOnSourceAvailability(self, address: Address, enable: bool) -> None:
        refuse("sourced loading")

    def loadActorSource(self, name: object) -> None:
        refuse("sourced loading")

    def unloadActorSource(self, source_hash: object) -> None:
        refuse("sourced loading")

    def notifyOnSystemRegistrationChanges(self, address: Address, enable: bool) -> None:
        refuse("conventions")

    def preRegisterRemoteSystem(self, address: object, capabilities: object) -> None:
        refuse("remote systems")

    def deRegisterRemoteSystem(self, address: object) -> None:
        refuse("remote systems")

    # -- figures

    @property
    def kind(self) -> str:
        return self.cls.__name__

    def figures(self) -> tuple[int, int, int]:
        return 0, 0, len(self.wakeups)


@lru_cache(maxsize=1024)
def _accepted(cls: type) -> tuple[str, ...]:
    """Which of Thespian's optional constructor arguments a class takes, by name."""
    parameters = inspect.signature(cls).parameters
    return tuple(name for name in ("capabilities", "requirements") if name in parameters)
