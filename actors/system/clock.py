"""The two clocks: the machine's, and that of an event loop."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Where the wall clock of a virtual loop begins."""


class SystemClock:
    """The machine's time."""

    __slots__ = ()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def now(self) -> datetime:
        """The wall clock, UTC."""
        return datetime.now(UTC)


class LoopClock:
    """A loop's time. On a virtual loop the wall clock is `epoch` plus what has passed."""

    __slots__ = ("_epoch", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: datetime = EPOCH) -> None:
        self._loop = loop
        self._epoch = epoch

    def monotonic(self) -> float:
        """The loop's seconds."""
        return self._loop.time()

    def now(self) -> datetime:
        """`epoch` plus the loop's seconds."""
        return self._epoch + timedelta(seconds=self._loop.time())
