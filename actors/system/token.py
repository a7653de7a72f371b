"""What waits in a mailbox and can still be withdrawn: timers, ends of actors, other notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.system.address import Address
from actors.system.messages import Terminated

if TYPE_CHECKING:
    from actors.system.running_cell import RunningCell


class Token:
    """A message to come. It belongs to one incarnation, and dies with it; `live` is False once
    it was withdrawn or handed over."""

    __slots__ = ("cell", "incarnation", "live")

    def __init__(self, cell: RunningCell) -> None:
        self.cell = cell
        self.incarnation = cell.restarts
        self.live = True

    def unwrap(self) -> object:
        """The message, now that it is this token's turn."""
        raise NotImplementedError


class Notice(Token):
    """What the system tells an incarnation about its children."""

    __slots__ = ("message",)

    def __init__(self, cell: RunningCell, message: object) -> None:
        super().__init__(cell)
        self.message = message

    def unwrap(self) -> object:
        self.live = False
        return self.message


class Timer(Token):
    """One named timer: in the loop's heap, then at most once in the mailbox, then over."""

    __slots__ = ("handle", "message", "name")

    def __init__(self, cell: RunningCell, name: str, after_s: float, message: object) -> None:
        super().__init__(cell)
        self.name = name
        self.message = message
        base, wait_s = cell.base, max(0.0, after_s)
        self.handle = base.loop.call_later(wait_s, self._due, context=base.context)

    def _due(self) -> None:
        if self.live:
            self.cell.base.called_by_loop(self._enqueue, self.cell)

    def _enqueue(self, cell: RunningCell) -> None:
        cell.enqueue(self, cell.address)

    def unwrap(self) -> object:
        self.live = False
        del self.cell.timers[self.name]
        return self.message

    def withdraw(self) -> None:
        self.live = False
        self.handle.cancel()


class Watch(Token):
    """One actor's interest in the end of another."""

    __slots__ = ("address", "reason")

    def __init__(self, cell: RunningCell, address: Address) -> None:
        super().__init__(cell)
        self.address = address
        self.reason = ""

    def gone(self, reason: str) -> None:
        if self.live:
            self.reason = reason
            self.cell.enqueue(self, self.address)

    def unwrap(self) -> object:
        self.live = False
        self.cell.watches.pop(self.address, None)
        return Terminated(self.address, self.reason)
