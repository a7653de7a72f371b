"""The watchdog: takes the process down when its loop has stood still for longer than its leases.

A loop that is blocked can neither renew nor let go; what it held is somebody else's by the time it
moves again. The gates keep it from doing harm, but not its handlers, so the process leaves by the
crudest exit there is, and whoever started it starts it again.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final, NoReturn

STALLED: Final = 75
"""The exit code: EX_TEMPFAIL, start it again."""

POLL_S: Final = 1.0


def leave(lag_s: float) -> NoReturn:
    """Nothing is flushed, closed or waited for: what stalls the loop may hold any of it."""
    text = f"crewlet: the event loop stood still for {lag_s:.1f} s, longer than its leases last\n"
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, text.encode())
    os._exit(STALLED)


class Watchdog:
    """A thread that looks whether the loop still beats. `limit_s`: how long it may not.

    Armed between `arm` and `disarm`. It stands down by itself when the loop is closed: a loop that
    is gone stalls nobody.
    """

    def __init__(
        self,
        limit_s: float,
        *,
        stalled: Callable[[float], None] = leave,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit_s = limit_s
        self._beat_s = min(POLL_S, limit_s / 5)
        self._stalled = stalled
        self._now = now
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last = float("inf")
        self._timer: asyncio.TimerHandle | None = None
        self._off = threading.Event()
        self._thread: threading.Thread | None = None

    def arm(self) -> None:
        """Watch the running loop."""
        self._loop = asyncio.get_running_loop()
        self._off.clear()
        self._beat()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def disarm(self) -> None:
        """Idempotent; the thread is gone afterwards."""
        self._off.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = self._timer = None

    def _beat(self) -> None:
        assert self._loop is not None
        self._last = self._now()
        self._timer = self._loop.call_later(self._beat_s, self._beat)

    def _watch(self) -> None:
        """A process that was stopped as a whole finds its beat old when it goes on, like one
        that was stalled: the loop gets one beat's time to show that it lives."""
        late = False
        while not self._off.wait(self._beat_s):
            if self._loop is None or self._loop.is_closed():
                return
            lag_s = self._now() - self._last
            if lag_s <= self._limit_s:
                late = False
            elif late:
                self._stalled(lag_s)
                return
            else:
                late = True
