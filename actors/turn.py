"""The turn: one child actor for each running partition."""

from __future__ import annotations

import asyncio

from actors.delivery import Ack, Defer, Nak, Outcome, Partition, Partly
from actors.messages import TurnEnded
from actors.ports import RunPartition
from actors.system import Actor, Address, EffectEnded, handles

REASON_LENGTH = 500


class TurnActor(Actor):
    """Runs the handler once and reports its outcome to the seat; it never runs it again."""

    def __init__(self, box: str, number: int, partition: Partition, run: RunPartition) -> None:
        super().__init__()
        self._box = box
        self._number = number
        self._partition = partition
        self._run = run

    def pre_start(self) -> None:
        self.effect(self._outcome(), tag=self._number)

    async def _outcome(self) -> Outcome | Partly:
        return await self._run(self._partition)

    @handles(EffectEnded)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        assert self.parent is not None
        self.tell(self.parent, TurnEnded(self._box, self._number, _outcome_of(ended)))
        self.stop()


def _outcome_of(ended: EffectEnded) -> Outcome | Partly:
    """Whatever a handler did becomes one of three outcomes: an exception is a Nak,
    a cancellation is work that this process has lost the right to do."""
    if isinstance(ended.error, asyncio.CancelledError):
        return Defer(reason="cancelled")
    if ended.error is not None:
        return Nak(reason=_told(ended.error)[:REASON_LENGTH])
    if isinstance(ended.value, Ack | Nak | Defer | Partly):
        return ended.value
    return Nak(reason=f"the handler returned {type(ended.value).__name__}, not an outcome")


def _told(error: BaseException) -> str:
    """An exception in words; its own `__str__` may be what is broken."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return name
