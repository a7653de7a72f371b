"""The first code of the process: be stoppable and safe to write from, then load the rest.

Nothing heavy is imported here. As process 1 of a container a signal without a handler is
thrown away by the kernel: a stop that falls into the imports would be lost.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

STOPPED = 0
INTERRUPTED = 130

_asked: list[int] = []


def main() -> NoReturn:
    """The console script `crewlet`."""
    obey_early()
    keep_descriptors()
    from crewlet.cli.app import run

    sys.exit(run(sys.argv[1:]))


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


def keep_descriptors() -> None:
    """Open 0, 1 and 2 on nothing where they are closed: else the first socket of ours takes
    such a number, and what is meant for a person goes to whoever is at its other end."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _leave(number: int, frame: FrameType | None) -> None:
    _asked.append(number)
    raise SystemExit(INTERRUPTED if number == signal.SIGINT else STOPPED)
