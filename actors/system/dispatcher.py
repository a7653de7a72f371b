"""The dispatcher: whose turn it is, system work first, and the loop's I/O between slices."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections import deque
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

from actors.system.address import Address
from actors.system.messages import DeadLetter
from actors.system.virtual import VirtualTime

if TYPE_CHECKING:
    from actors.system.cell import Cell
    from actors.system.effect import Worker

T = TypeVar("T")

MESSAGES_A_TURN: Final = 16
"""Messages that one actor handles before the next has its turn."""

SLICE_S: Final = 0.002
"""Seconds of messages before the loop sees to its I/O and timers."""

TURNS_A_SLICE: Final = 2048
"""Turns before the same, however short they are."""

VIRTUAL_TURNS_A_SLICE: Final = 128
"""The bound where time stands still (a virtual loop)."""


def _no_time() -> float:
    return 0.0


class Dispatcher:
    """Runs cells on one loop. All state is touched on the loop's thread alone.

    `signals` is system work (starts, stops, failures): all of it runs, between two messages,
    before any mail. `outbox` holds what the running handler wants done when it returns.
    """

    def __init__(self, *, seed: int | None, mailbox_bound: int, shuffle: bool) -> None:
        self.loop: asyncio.AbstractEventLoop
        self.log = logging.getLogger("actors.system")
        self.mailbox_bound = mailbox_bound
        self.ready: deque[Cell] = deque()
        self.signals: deque[Callable[[], None]] = deque()
        self.outbox: list[tuple[Address | None, Any]] = []
        self.current: Cell | None = None
        self.lender: Worker | None = None
        self.armed = False
        self.until = 0.0
        self.turns = TURNS_A_SLICE
        self.time: Callable[[], float] = time.monotonic
        self.dead_letters: dict[str, int] = {}
        self.on_dead_letter: Callable[[DeadLetter], None] | None = None
        self.context = contextvars.Context()
        self._seed = seed
        self._shuffle = shuffle
        self.chance: Random

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Bind to `loop`. On a virtual loop time stands while messages run, so turns are
        counted instead, and the loop's seed is the default."""
        self.loop = loop
        if isinstance(loop, VirtualTime):
            self.time = _no_time
            self._shuffle = self._shuffle or loop.shuffle
            self.turns = VIRTUAL_TURNS_A_SLICE
            if self._seed is None:
                self._seed = loop.random.getrandbits(32)
        self.chance = Random(self._seed)  # noqa: S311 - jitter and order, not a secret

    def arm(self) -> None:
        """Let the loop run us soon. The context is ours, not that of whoever happens to call:
        trace ids of one caller must not leak into the work of others."""
        if not self.armed:
            self.armed = True
            self.loop.call_soon(self._slice, context=self.context)

    def signal(self, work: Callable[[], None]) -> None:
        """Have system work done before the next message of anybody."""
        self.signals.append(work)
        if not self.armed:
            self.arm()

    def called_by_loop(self, work: Callable[[T], None], about: T) -> None:
        """Do `work`, and at once what comes of it: the loop itself has called, in our context and
        outside of all slices, so that another turn of it - a look at all sockets - need not be
        waited for. Where a seed shuffles, that turn is waited for before what comes of it is
        handled: whatever may be handled first is to be in sight when it chooses."""
        if self._shuffle or self.armed:
            work(about)
            return
        self.armed = True
        try:
            work(about)
        finally:
            self._slice()

    def _slice(self) -> None:
        """Run messages for one slice, then give the loop a turn."""
        self.until = self.time() + SLICE_S
        try:
            if self._shuffle:
                self._run_shuffled()
            else:
                self._run()
        finally:
            self.current = None
            self.armed = False
            if self.ready or self.signals:
                self.arm()

    def _run(self) -> None:
        ready, signals, now, until = self.ready, self.signals, self.time, self.until
        for _ in range(self.turns):
            if signals:
                signals.popleft()()
            elif ready:
                ready.popleft().turn()
            else:
                return
            if now() >= until:
                return

    def _run_shuffled(self) -> None:
        """The simulation's order: any ready actor may be next, chosen by the seed."""
        ready, signals, chance = self.ready, self.signals, self.chance
        for _ in range(self.turns):
            if signals:
                signals.popleft()()
            elif ready:
                if len(ready) > 1:
                    ready.rotate(chance.randrange(len(ready)))
                ready.popleft().turn()
            else:
                return

    def report_failure(self, cell: Cell, error: BaseException) -> None:
        """Log it with its traceback; the message that was handled is not formatted."""
        where = {"actor": str(cell.address), "kind": cell.kind, "error": type(error).__name__}
        self.log.warning("actor_failed", extra=where, exc_info=error)

    def dead_letter(self, to: Address, message: object, sender: Address, reason: str) -> None:
        """Count it, and show it to whoever asked for dead letters. Only its type is logged."""
        self.dead_letters[reason] = self.dead_letters.get(reason, 0) + 1
        if self.log.isEnabledFor(logging.DEBUG):
            kind = type(message).__name__
            self.log.debug("dead_letter", extra={"to": str(to), "kind": kind, "reason": reason})
        if self.on_dead_letter is not None:
            try:
                self.on_dead_letter(DeadLetter(to, message, sender, reason))
            except Exception as error:
                self.log.error("dead_letter_hook_failed", extra={"error": type(error).__name__})
