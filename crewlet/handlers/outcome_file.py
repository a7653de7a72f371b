"""Where a command states an outcome: a file of one turn, apart from everything that it prints.

What a model says ends up on stdout, whoever wrapped it, so nothing there is more than an answer
(docs/adr/0018). The file lies in a folder of its own that only the node's user may enter.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

from crewlet.handlers.outcomes import MAX_ANSWER_BYTES

VARIABLE: Final = "CREWLET_OUTCOME"
"""The environment variable that names it."""

MAX_BYTES: Final = 2 * MAX_ANSWER_BYTES
"""An answer, the messages that the turn was shown, and the JSON around them."""


class Unreadable(Exception):
    """What lies there can't be an outcome; the text says why."""


class OutcomeFile:
    """Not there until the command writes it. Raises OSError where there is no room for it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="crewlet-turn-"))
        self.path = self._folder / "outcome"

    def read(self) -> bytes | None:
        """What was written; None where nothing was. Raises Unreadable."""
        try:
            # Neither through a link nor into a pipe: the command may have put anything there.
            fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unreadable(error.strerror or type(error).__name__) from None
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Unreadable("it is no file")
            with os.fdopen(fd, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
        finally:
            os.close(fd)
        if len(data) > MAX_BYTES:
            raise Unreadable(f"it is longer than {MAX_BYTES} bytes")
        return data

    def close(self) -> None:
        """It is gone, and whatever else was put beside it."""
        shutil.rmtree(self._folder, ignore_errors=True)
