"""A command's stderr, cut into lines that may go into a log: bounded in length and number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MAX_LINE: Final = 2000
"""Characters of one line; the rest of it is dropped."""

MAX_LINES: Final = 200
"""Lines of one turn that are passed on; the others are counted."""


class Lines:
    """Feed it bytes; it calls `on_line` for each line that is not blank.

    `last` is the newest of them, whether or not it was passed on; `dropped` counts those that
    were not.
    """

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._partial = bytearray()
        self._passed = 0
        self.dropped = 0
        self.last = ""

    def feed(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._extend(piece)
            self._flush()
        self._extend(rest)

    def end(self) -> None:
        """The stream has ended: what is left is a line too."""
        self._flush()

    def _extend(self, piece: bytes) -> None:
        room = 4 * MAX_LINE - len(self._partial)  # a character has at most four bytes
        if room > 0:
            self._partial += piece[:room]

    def _flush(self) -> None:
        line = printable(self._partial.decode("utf-8", "replace").strip())[:MAX_LINE]
        self._partial.clear()
        if not line:
            return
        self.last = line
        if self._passed == MAX_LINES:
            self.dropped += 1
            return
        self._passed += 1
        self._on_line(line)


def printable(text: str) -> str:
    """Control characters (escape sequences, carriage returns) made visible and harmless."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in text)
