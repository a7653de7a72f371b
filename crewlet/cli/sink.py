"""Standard output, written so that nothing is lost and nothing of ours breaks a pipe."""

from __future__ import annotations

import os
import select
import sys

from crewlet.cli.terminal import is_rich


def descriptor() -> int | None:
    """The descriptor behind standard output; None where there is none (a test's buffer)."""
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):
        return None


def write(data: bytes) -> None:
    """All of it, however slow the reader. Raises BrokenPipeError when it has gone.

    Python's own text layer gives up in the middle on a pipe that does not block, and with
    PYTHONUNBUFFERED it may do so on any pipe.
    """
    sys.stdout.flush()
    fd = descriptor()
    if fd is None:
        sys.stdout.buffer.write(data)
        return
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            poll.poll()


def write_text(text: str) -> None:
    """Text in the terminal's own encoding; what that can't say is escaped, never refused."""
    write(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def rich_here() -> bool:
    """Whether standard output is a terminal that wants colours and frames."""
    return is_rich(sys.stdout, os.environ)
