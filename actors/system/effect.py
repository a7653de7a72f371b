"""Effects: coroutines that run beside the mailbox, and the tasks in which they run.

A task and two turns of the loop - one to begin it, one to hear of its end - cost more than all
that a short effect does. So a task tells the end of its effect itself, in its last step; and
where that effect never had to wait, the task may be lent to the next one (docs/benchmarks.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

from actors.system.dispatcher import SLICE_S
from actors.system.messages import EffectEnded
from actors.system.token import Token

if TYPE_CHECKING:
    from actors.system.running_cell import RunningCell

EFFECTS_A_TASK: Final = 64
"""Effects that one task runs before the loop has its turn, however short they are."""

_OF_ALL: Final = (KeyboardInterrupt, SystemExit)
"""What ends the loop, and not only the effect that raised it."""


class Effect(Token):
    """A coroutine at work for one incarnation."""

    __slots__ = ("_task", "coroutine", "error", "tag", "value")

    def __init__(
        self, cell: RunningCell, coroutine: Coroutine[Any, Any, object], tag: object
    ) -> None:
        super().__init__(cell)
        self.coroutine = coroutine
        self.tag = tag
        self.value: object = None
        self.error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """In the task that has just told an end and is free for another, or in a new one."""
        base = self.cell.base
        worker, base.lender = base.lender, None
        if worker is not None:
            worker.take(self)
        else:
            worker = Worker(self)
            # A step begins in the context of the actors: what it tells is handled in there.
            worker.task = base.loop.create_task(worker, context=base.context)
        self._task = worker.task

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def ended(self) -> None:
        """Let go of the task, which holds what it ran: a circle would keep what was raised."""
        self._task = None

    def unwrap(self) -> object:
        return EffectEnded(self.tag, self.value, self.error)


class Worker(Coroutine[Any, Any, None]):
    """What a task of effects runs: one effect, and then others as long as none of them waits.

    Each has a context of its own, so that no variable of one is seen by the next. One that has
    waited was out of sight, and others may hold its task by then: that task takes no other.
    """

    __slots__ = ("_base", "_context", "_effect", "_heir", "_left", "_until", "_waited", "task")

    def __init__(self, effect: Effect) -> None:
        base = effect.cell.base
        self._base = base
        self._effect = effect
        self._context: Context = base.context.copy()
        self._heir: Effect | None = None
        self._left = EFFECTS_A_TASK
        self._until = base.time() + SLICE_S
        self._waited = False
        self.task: asyncio.Task[None] | None = None

    def __getattr__(self, name: str) -> Any:
        """To whoever looks into the task (anyio does), it runs the effect's own coroutine."""
        return getattr(self._effect.coroutine, name)

    def __await__(self) -> Any:
        raise TypeError("a task runs this, and nobody else")

    def take(self, effect: Effect) -> None:
        """Run this one next."""
        self._heir = effect

    # -- what a task asks of its coroutine

    def send(self, value: None) -> Any:
        return self._go_on(self._effect.coroutine.send, value)

    def throw(self, error: Any, *more: Any) -> Any:
        return self._go_on(self._effect.coroutine.throw, error)

    def close(self) -> None:
        self._effect.coroutine.close()

    def _go_on(self, resume: Callable[[Any], object], given: object) -> object:
        """To the next wait, which the task sees to, or to the end of all its effects."""
        while True:
            effect = self._effect
            try:
                waits_for = self._context.run(resume, given)
            except StopIteration as over:
                effect.value = over.value
            except BaseException as error:
                effect.error = _as_raised(error)
                if isinstance(error, _OF_ALL):
                    self._left = 0
            else:
                self._waited = True
                return waits_for
            heir = self._end(effect)
            if heir is None:
                self.task = None
                if isinstance(effect.error, _OF_ALL):
                    raise effect.error
                raise StopIteration
            resume, given = self._begin(heir)

    def _end(self, effect: Effect) -> Effect | None:
        """Tell it, and do at once what comes of it; the effect that takes this task over."""
        base, task = self._base, self.task
        assert task is not None
        free = self._left > 0 and not self._waited and not task.cancelling()
        if free and base.time() < self._until:
            self._left -= 1
            base.lender = self
        try:
            effect.ended()
            base.called_by_loop(effect.cell.effect_ended, effect)
        finally:
            base.lender = None
        heir, self._heir = self._heir, None
        return heir

    def _begin(self, heir: Effect) -> tuple[Callable[[Any], object], object]:
        self._effect = heir
        self._context = self._base.context.copy()
        if self.task is not None and self.task.cancelling():  # before it began
            return heir.coroutine.throw, asyncio.CancelledError()
        return heir.coroutine.send, None


def _as_raised(error: BaseException) -> BaseException:
    """Without the worker's frame, which holds the effect that holds the error: a circle would
    keep all that the effect had in hand until the garbage collector comes."""
    trace = error.__traceback__
    return error.with_traceback(trace.tb_next if trace is not None else None)
