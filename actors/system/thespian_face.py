"""The verbs that `thespian.actors.ActorSystem` calls on its base, from any thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from thespian.actors import (
    ActorAddress,
    ActorSystem,
    ActorSystemFailure,
    DeadEnvelope,
    InvalidActorAddress,
    ThespianGeneration,
)

from actors.system.actor import Actor
from actors.system.actor_cell import ActorCell
from actors.system.address import Address
from actors.system.cell import Cell
from actors.system.dispatcher import Dispatcher
from actors.system.endpoint import External, Nobody, Tomb
from actors.system.loop_thread import LoopThread
from actors.system.refusal import refuse
from actors.system.supervision import RESTART
from actors.system.thespian_cell import ThespianCell
from actors.system.thespian_context import ThespianContext
from actors.system.vocabulary import (
    ThespianActor,
    class_of,
    dead_envelope,
    fits,
    is_internal,
    no_class,
    no_system_for,
    seconds,
)

if TYPE_CHECKING:
    from actors.system.base import AsyncioSystemBase

T = TypeVar("T")

VERSION: Final = "4.0.1"
"""Of Thespian: what the cells were written against."""

SHUTDOWN_S: Final = 10.0
"""Seconds that the blocking `shutdown` waits for the actors to end."""


class ThespianFace(Dispatcher):
    """Thespian's face of the system. Every verb may be called from any thread but `ask`,
    `listen` and `shutdown`, which block: on the loop's own thread they raise, respectively
    only begin. A program without a loop gets one, in a thread."""

    def __init__(
        self, *, seed: int | None = None, mailbox_bound: int = 10_000, shuffle: bool = False
    ) -> None:
        super().__init__(seed=seed, mailbox_bound=mailbox_bound, shuffle=shuffle)
        self.capabilities: dict[str, Any] = {}
        self.tops: dict[Address, Cell] = {}
        self.global_names: dict[str, Address] = {}
        self.dead_letter_handler: Address | None = None
        self.closing = False
        self._numbers = 0
        self._thread: int | None = None
        self._own: LoopThread | None = None
        self.nobody = self.new_address("nobody")
        self.nobody.endpoint = Nobody(self, self.nobody)
        self.system_address = self.new_address("ActorSys")
        self.system_address.endpoint = Nobody(self, self.system_address)
        self._external = self._new_external()
        self.bind(None)

    def new_address(self, label: str) -> Address:
        """The next address; addresses are numbered in the order of creation."""
        self._numbers += 1
        return Address(self._numbers, label)

    def _new_external(self) -> External:
        address = self.new_address("external")
        address.endpoint = end = External(self, address, self.mailbox_bound)
        return end

    def bind(self, system: ActorSystem | None) -> None:
        """Share the capabilities of the `ActorSystem` that was given this base."""
        if system is not None:
            system.capabilities.update(self.capabilities)
            self.capabilities = system.capabilities
        self.capabilities.setdefault("Python Version", tuple(sys.version_info))
        self.capabilities.setdefault("Thespian Version", VERSION)
        self.capabilities.setdefault("Thespian Generation", ThespianGeneration)
        self.capabilities.setdefault("Thespian ActorSystem Name", "asyncio")
        self.capabilities.setdefault("Thespian ActorSystem Version", 1)
        self.capabilities.setdefault("Thespian Watch Supported", True)

    # -- threads

    def bind_loop(self) -> None:
        """Bind to the running loop, once. Raises RuntimeError without one."""
        if self._thread is None:
            self.attach(asyncio.get_running_loop())
            self._thread = threading.get_ident()

    def require_loop(self, verb: str) -> None:
        """Bind if need be; RuntimeError on any thread but the loop's."""
        self.bind_loop()
        if threading.get_ident() != self._thread:
            raise RuntimeError(f"{verb}: only on the thread of the system's loop")

    def _here(self) -> bool:
        """Whether this is the loop's thread. Binds first: to the running loop, or a new one."""
        if self._thread is None:
            try:
                self.bind_loop()
            except RuntimeError:
                self._own = LoopThread()
                self.attach(self._own.loop)
                self._thread = self._own.ident
        return threading.get_ident() == self._thread

    def _call(self, work: Callable[[], T]) -> T:
        """Run `work` on the loop's thread and return its result."""
        if self._here():
            return work()
        if self.closing and self.loop.is_closed():
            raise ActorSystemFailure("the actor system is shut down")
        done: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return done.result()

    # -- verbs

    def newPrimaryActor(
        self,
        cls: type[ThespianActor] | str,
        requirements: dict[str, Any] | None = None,
        global_name: str | None = None,
        source_hash: str | None = None,
    ) -> Address:
        """Make a top-level actor. Raises what its constructor raises."""
        return self._call(lambda: self.create(None, cls, requirements, global_name, source_hash))

    def create(
        self,
        parent: ThespianCell | None,
        cls: type[ThespianActor] | str,
        requirements: dict[str, Any] | None,
        global_name: str | None,
        source_hash: str | None,
    ) -> Address:
        """Make an actor as Thespian does: at once. A child that can't be made is reported to
        its parent as exited; a top-level one raises."""
        if source_hash is not None:
            refuse("sourced loading")
        if global_name and global_name in self.global_names:
            return self.global_names[global_name]
        known = class_of(cls)
        if not isinstance(known, type) or not issubclass(known, ThespianActor):
            raise no_class(cls)
        base = self.as_base()
        cell: Cell
        if issubclass(known, Actor):
            cell = ActorCell(base, parent, known, (), "", RESTART)
            self._keep(cell, global_name)
            self.signal(cell.start)
            return cell.address
        cell = ThespianCell(base, parent, known)
        self._keep(cell, global_name)
        cell.globalName = global_name
        try:
            if not fits(known, self.capabilities, requirements):
                raise no_system_for(known)
            cell.construct(requirements)
        except BaseException as error:
            cell.stop(f"not created: {type(error).__name__}")
            if parent is None or not isinstance(error, Exception):
                raise
        return cell.address

    def _keep(self, cell: Cell, global_name: str | None) -> None:
        if cell.parent is None:
            self.tops[cell.address] = cell
        else:
            cell.parent.adopt(cell)
        if global_name:
            self.global_names[global_name] = cell.address

    def adopt_top(self, cell: Cell) -> None:
        self.tops[cell.address] = cell

    def forget(self, cell: Cell) -> None:
        """A cell is buried: let go of all that knows it by name."""
        self.tops.pop(cell.address, None)
        if self.dead_letter_handler is cell.address:
            self.dead_letter_handler = None
        if isinstance(cell, ThespianCell) and cell.globalName:
            self.global_names.pop(cell.globalName, None)

    def resolve(self, to: ActorAddress) -> Address:
        """Our own address object for any Thespian address; unknown ones lead nowhere."""
        if isinstance(to, Address):
            return to
        if not isinstance(to, ActorAddress):
            raise InvalidActorAddress(to, "not a valid ActorAddress")
        cells = list(self.tops.values())
        while cells:
            cell = cells.pop()
            if cell.address == to:
                return cell.address
            cells.extend((cell.children or {}).values())
        unknown = self.new_address("unknown")
        unknown.endpoint = Tomb(self, unknown, "unknown")
        return unknown

    def tell(self, to: ActorAddress, message: object) -> None:
        """Send from outside, from any thread. Answers to a tell on the loop's thread are dead
        letters (use `aask`); those to other threads wait for `listen`."""
        if self._here():
            self.resolve(to).endpoint.push(message, self.nobody)
        else:
            self.tell_from(self._external, to, message)

    def tell_from(self, sender: External, to: ActorAddress, message: object) -> None:
        if self._here():
            self.resolve(to).endpoint.push(message, sender.address)
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.tell_from, sender, to, message)

    def ask(
        self, to: ActorAddress, message: object, timeout: timedelta | float | None = None
    ) -> object:
        """Thespian's blocking ask: the next message that anybody sends to this program, or
        None after `timeout`. On the loop's thread it raises: await `aask` there."""
        return self.ask_from(self._external, to, message, timeout)

    def ask_from(
        self,
        sender: External,
        to: ActorAddress,
        message: object,
        timeout: timedelta | float | None,
    ) -> object:
        self._refuse_to_block("ask")
        self.tell_from(sender, to, message)
        return self.listen_for(sender, timeout)

    def listen(self, timeout: timedelta | float | None = None) -> object:
        """Thespian's blocking listen: the next message for this program, or None."""
        return self.listen_for(self._external, timeout)

    def listen_for(self, end: External, timeout: timedelta | float | None) -> object:
        self._refuse_to_block("listen")
        deadline = None if timeout is None else time.monotonic() + seconds(timeout)
        while True:
            try:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                message = end.mail.get(timeout=left)
            except queue.Empty:
                return None
            if not is_internal(message):
                return message

    def _refuse_to_block(self, verb: str) -> None:
        if self._here():
            raise RuntimeError(f"{verb} would block the loop that has to answer: await aask")

    def external_clone(self) -> ThespianContext:
        """An end of its own for one thread (`ActorSystem.private`)."""
        return ThespianContext(self, self._new_external())

    def _handleDeadLetters(self, address: Address, enable: bool) -> None:
        """The last who registers gets all dead letters; only that one can sign off."""
        if enable:
            self.dead_letter_handler = address
        elif self.dead_letter_handler == address:
            self.dead_letter_handler = None

    def dead_letter(self, to: Address, message: object, sender: Address, reason: str) -> None:
        super().dead_letter(to, message, sender, reason)
        handler = self.dead_letter_handler
        if handler is not None and handler is not to and not isinstance(message, DeadEnvelope):
            handler.endpoint.push(dead_envelope(to, message), sender)

    def post(self, to: ActorAddress, message: object, sender: Address) -> None:
        """Send for a Thespian actor, which may hold an address of another system's loop."""
        end = self.resolve(to).endpoint
        if end.base.loop is self.loop:
            end.push(message, sender)
        else:
            end.base.loop.call_soon_threadsafe(end.push, message, sender)

    def updateCapability(self, name: str, value: object = None) -> None:
        """Set a capability, or remove it with None; actors that need it are not stopped."""
        if value is None:
            self.capabilities.pop(name, None)
        else:
            self.capabilities[name] = value

    def loadActorSource(self, name: object) -> None:
        """Refused."""
        refuse("sourced loading")

    def unloadActorSource(self, source_hash: object) -> None:
        """Refused."""
        refuse("sourced loading")

    def shutdown(self) -> None:
        """End all actors. Blocks up to SHUTDOWN_S; on the loop's thread it only begins."""
        if self._thread is None or self.loop.is_closed():
            return
        if self._here():
            self.begin_shutdown()
            return
        ending = asyncio.run_coroutine_threadsafe(
            self.as_base().shutdown_async(SHUTDOWN_S), self.loop
        )
        try:
            ending.result(SHUTDOWN_S + 1)
        except TimeoutError:
            self.log.error("shutdown_late")
        if self._own is not None:
            self._own.stop(1.0)

    def begin_shutdown(self) -> None:
        """Have all actors end, the youngest first. Returns at once."""
        self.closing = True
        for cell in reversed(list(self.tops.values())):
            self.signal(partial(cell.stop, "shutdown"))

    def as_base(self) -> AsyncioSystemBase:
        raise NotImplementedError
