"""Signals before there is anybody to hand them to.

As process 1 of a container a signal without a handler is thrown away by the kernel: a stop that
falls into the imports would be lost.
"""

from __future__ import annotations

import signal
from types import FrameType

STOPPED = 0
INTERRUPTED = 130

_asked: list[int] = []


def obey_early() -> None:
    """SIGTERM ends the process with 0 and SIGINT with 130, until `up` brings its own."""
    for number in (signal.SIGTERM, signal.SIGINT):
        # A parent that had the signal ignored (nohup, a background job) meant it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)


def stop_was_asked() -> int | None:
    """The exit code of a stop that Python swallowed: an exception that leaves a `__del__` or
    a callback of the import machinery is printed and forgotten."""
    if not _asked:
        return None
    return INTERRUPTED if _asked[0] == signal.SIGINT else STOPPED


def _leave(number: int, frame: FrameType | None) -> None:
    _asked.append(number)
    raise SystemExit(INTERRUPTED if number == signal.SIGINT else STOPPED)
