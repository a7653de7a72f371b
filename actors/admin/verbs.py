"""A verb: the shape of its arguments, and the coroutine that answers with rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from actors.admin.frames import Failure

A = TypeVar("A", bound=Struct)


class Refused(Exception):
    """Raised by a verb that will not do what it was asked; the client gets the sentence."""

    def __init__(self, code: str, message: str, exit: int = 3) -> None:
        super().__init__(message)
        self.failure = Failure(code=code, message=message, exit=exit)


class Caller(Struct, frozen=True):
    """Who calls: the user at the other end of the socket, as the kernel knows them. `via` is
    the node whose socket it was, where somebody else's answers for it."""

    uid: int
    user: str
    via: str = ""


@dataclass(frozen=True)
class Verb(Generic[A]):
    """`run` is called with the decoded arguments and the caller, and yields rows (anything
    msgspec encodes).

    It is closed (GeneratorExit or CancelledError at its `yield` or `await`) when the client
    vanishes. `follows` marks a verb whose answer may have no end of its own: when the node
    stops it is ended at once and cleanly, where any other verb gets a moment to finish.
    """

    args: type[A]
    run: Callable[[A, Caller], AsyncGenerator[object, None]]
    follows: bool = False

    def start(self, args: Raw, caller: Caller) -> AsyncGenerator[object, None]:
        """The rows for these arguments. Raises Refused where they do not fit `args`."""
        try:
            decoded = msgspec.json.decode(args, type=self.args)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Refused("bad_args", f"the arguments do not fit: {error}", exit=2) from None
        return self.run(decoded, caller)


AnyVerb = Verb[Any]
