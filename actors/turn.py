"""The turn: the child actor that runs a partition."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from actors.delivery import Ack, Defer, Nak, Outcome, Partition, Partly
from actors.messages import TurnEnded
from actors.ports import RunPartition
from actors.system import Actor, Address, EffectEnded, handles
from actors.tenure import Fenced

REASON_LENGTH = 500

_OUTCOMES: Final = (Ack, Nak, Defer, Partly)


class RunTurn(Struct, frozen=True):
    """Work this partition; answered by `TurnEnded` with its number."""

    number: int
    partition: Partition
    run: RunPartition


class TurnActor(Actor):
    """Runs one partition at a time, once, and reports its outcome to its box.

    A box keeps it for the next partition; one that was abandoned is stopped, and what its
    handler says later is nobody's.
    """

    def __init__(self, box: str) -> None:
        super().__init__()
        self._box = box

    @handles(RunTurn)
    def on_run(self, wanted: RunTurn, sender: Address) -> None:
        self.effect(_run(wanted), tag=wanted.number)

    @handles(EffectEnded)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        parent = self.parent
        assert parent is not None and isinstance(ended.tag, int)
        self.tell(parent, TurnEnded(self._box, ended.tag, _outcome_of(ended)))


async def _run(wanted: RunTurn) -> Outcome | Partly:
    return await wanted.run(wanted.partition)


def _outcome_of(ended: EffectEnded) -> Outcome | Partly | None:
    """Whatever a handler did becomes one of three outcomes: an exception is a Nak,
    a cancellation is work that this process has lost the right to do. None: it was fenced,
    and there is nothing to say to anybody."""
    if isinstance(ended.error, Fenced):
        return None
    if isinstance(ended.error, asyncio.CancelledError):
        return Defer(reason="cancelled")
    if ended.error is not None:
        return Nak(reason=_told(ended.error)[:REASON_LENGTH])
    if isinstance(ended.value, _OUTCOMES):
        return ended.value
    return Nak(reason=f"the handler returned {type(ended.value).__name__}, not an outcome")


def _told(error: BaseException) -> str:
    """An exception in words; its own `__str__` may be what is broken."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return name
