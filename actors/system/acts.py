"""Acts that a handler asked for and that can be undone while it has not returned."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actors.system.actor_cell import ActorCell


class Act:
    """Called when the handler returns; undone when it raises."""

    __slots__ = ("cell",)

    def __init__(self, cell: ActorCell) -> None:
        self.cell = cell

    def __call__(self) -> None:
        raise NotImplementedError

    def undo(self) -> None:
        raise NotImplementedError


class BeginEffect(Act):
    """Run a coroutine as a task of the actor, or close it unrun."""

    __slots__ = ("coroutine", "tag")

    def __init__(self, cell: ActorCell, coroutine: Coroutine[Any, Any, Any], tag: object) -> None:
        self.cell = cell
        self.coroutine = coroutine
        self.tag = tag

    def __call__(self) -> None:
        self.cell.begin_effect(self.coroutine, self.tag)

    def undo(self) -> None:
        self.coroutine.close()


class Birth(Act):
    """Start a child that was promised an address, or leave the address a tomb."""

    __slots__ = ()

    def __call__(self) -> None:
        self.cell.be_born()

    def undo(self) -> None:
        self.cell.parent = None  # who never heard of it
        self.cell.reason = "never started"
        self.cell.bury()
