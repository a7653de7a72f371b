"""Where messages end: the face an address points to, and the ends that are no actors."""

from __future__ import annotations

import asyncio
import queue
from typing import TYPE_CHECKING, Protocol

from actors.system.address import Address

if TYPE_CHECKING:
    from actors.system.dispatcher import Dispatcher
    from actors.system.token import Watch


class Endpoint(Protocol):
    """Takes mail for one address."""

    @property
    def base(self) -> Dispatcher:
        """The system it belongs to."""

    def push(self, message: object, sender: Address) -> None:
        """Take a message. Never raises, never runs the receiver."""

    def watched_by(self, watch: Watch) -> None:
        """Tell `watch` when this address is gone; at once if it is already."""

    def unwatched_by(self, watch: Watch) -> None:
        """Forget `watch`."""


class _Unwatched:
    """The part of an end that can't be watched: it is no actor, and never goes."""

    __slots__ = ()

    def watched_by(self, watch: Watch) -> None:
        """Nothing will happen."""

    def unwatched_by(self, watch: Watch) -> None:
        """Nothing was kept."""


class Tomb(_Unwatched):
    """What an address points to when its actor is gone."""

    __slots__ = ("address", "base", "reason")

    def __init__(self, base: Dispatcher, address: Address, reason: str) -> None:
        self.base = base
        self.address = address
        self.reason = reason

    def push(self, message: object, sender: Address) -> None:
        self.base.dead_letter(self.address, message, sender, "gone")

    def watched_by(self, watch: Watch) -> None:
        watch.gone(self.reason)


class Nobody(_Unwatched):
    """The sender of what is told from outside: answers to it are dead letters."""

    __slots__ = ("address", "base")

    def __init__(self, base: Dispatcher, address: Address) -> None:
        self.base = base
        self.address = address

    def push(self, message: object, sender: Address) -> None:
        self.base.dead_letter(self.address, message, sender, "no_actor")


class Reply(_Unwatched):
    """The one-shot address of an `aask`: the first message is the answer."""

    __slots__ = ("address", "base", "future")

    def __init__(self, base: Dispatcher, address: Address, future: asyncio.Future[object]) -> None:
        self.base = base
        self.address = address
        self.future = future

    def push(self, message: object, sender: Address) -> None:
        if self.future.done():
            self.base.dead_letter(self.address, message, sender, "gone")
        else:
            self.future.set_result(message)


class External(_Unwatched):
    """The mailbox of a thread outside, for Thespian's blocking `ask` and `listen`."""

    __slots__ = ("address", "base", "mail")

    def __init__(self, base: Dispatcher, address: Address, bound: int) -> None:
        self.base = base
        self.address = address
        self.mail: queue.Queue[object] = queue.Queue(bound)

    def push(self, message: object, sender: Address) -> None:
        try:
            self.mail.put_nowait(message)
        except queue.Full:
            self.base.dead_letter(self.address, message, sender, "full")
