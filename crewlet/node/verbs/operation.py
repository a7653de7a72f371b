"""What one verb of a node is: its arguments, what answers, where, and what it acts on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

from actors.admin import Caller

A = TypeVar("A", bound=Struct)

Rows: TypeAlias = AsyncGenerator[object, None]

Where: TypeAlias = Literal["here", "owner", "node"]
"""Who answers: the node that is asked; the one that works the seat `args.handle`; or the one
that `args.node` names."""


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class OfSeat(Struct, frozen=True, forbid_unknown_fields=True):
    """A verb about one seat."""

    handle: str


class Done(Struct, frozen=True, kw_only=True):
    """What an act did. `changed` false: it was so already."""

    target: str
    node: str
    changed: bool
    note: str = ""


@dataclass(frozen=True)
class Operation(Generic[A]):
    """`target` makes it an act: it names what is acted on, and nothing else of the arguments.
    Every act is recorded (operator_acted) on the node that does it. `follows` marks an answer
    without an end of its own: another node takes it piece by piece. `or_here`: where the node that
    should answer is silent, the one that was asked does what can be done from anywhere."""

    args: type[A]
    run: Callable[[A, Caller], Rows]
    target: Callable[[A], str] | None = None
    where: Where = "here"
    follows: bool = False
    or_here: bool = False


AnyOperation: TypeAlias = Operation[Any]


def the_handle(args: Any) -> str:
    """The target of an act on a seat."""
    return str(args.handle)


def the_node(args: Any) -> str:
    return str(args.node)
