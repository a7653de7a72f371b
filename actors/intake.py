"""The seats that this node is to take: in order, and only as many at a time as it has room for."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from actors.fleet_messages import TakeSeat
from actors.machines.window import Window

QUICK_S: Final = 0.015
"""Between a seat's claim and its mailboxes' attachment. Alone it takes 10 ms at a server nearby;
all at once, a thousand would be claimed at once and then wait for one another."""


class Intake:
    """`now` is the node's monotonic clock."""

    def __init__(self) -> None:
        self._window = Window(QUICK_S)
        self._waiting: OrderedDict[str, TakeSeat] = OrderedDict()
        self._since: dict[str, float] = {}

    def put(self, wanted: TakeSeat) -> None:
        self._waiting[wanted.handle] = wanted

    def next(self) -> TakeSeat | None:
        """The one whose turn it is; None where there is none, or no room."""
        room = len(self._since) < self._window.size
        return self._waiting.popitem(last=False)[1] if self._waiting and room else None

    def began(self, handle: str, now: float) -> None:
        """This one is being claimed."""
        self._since[handle] = now

    def there(self, handle: str, now: float) -> None:
        """Its mailboxes are attached."""
        since = self._since.pop(handle, None)
        if since is not None:
            self._window.done(now - since)

    def gone(self, handle: str) -> None:
        """It came to nothing, which says nothing of how quickly things are done."""
        self._since.pop(handle, None)

    def withdraw(self, handle: str) -> bool:
        """It is not to be taken any more; False where it does not wait."""
        return self._waiting.pop(handle, None) is not None

    def clear(self) -> list[TakeSeat]:
        """None is to be taken any more; those that waited."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        return waiting
