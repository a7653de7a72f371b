"""Random ids that nobody can guess, drawn from the kernel 256 at a time.

To ask it for each of them was most of what it cost to make an event (docs/benchmarks.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 256


class Pool:
    """Ids of `size` random bytes each, none of them given twice: not to two threads, and not to
    a process and one that it forked."""

    def __init__(self, size: int, shape: Callable[[str], str] = str) -> None:
        """`shape` makes the id of its hex digits."""
        self._digits = 2 * size
        self._shape = shape
        self._ready: list[str] = []
        os.register_at_fork(after_in_child=self._ready.clear)

    def draw(self) -> str:
        while True:
            try:
                return self._ready.pop()  # one step, whichever threads draw
            except IndexError:
                self._ready += self._more()

    def _more(self) -> list[str]:
        digits, size = os.urandom(self._digits // 2 * AT_ONCE).hex(), self._digits
        return [self._shape(digits[at : at + size]) for at in range(0, len(digits), size)]


def _as_uuid(digits: str) -> str:
    """Version 4 of RFC 9562: six of the 128 bits say so."""
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


_uuids: Final = Pool(16, _as_uuid)
_spans: Final = Pool(8)


def new_id() -> str:
    """A random UUID as text."""
    return _uuids.draw()


def new_span() -> str:
    """The id of a span: 16 hex digits."""
    return _spans.draw()
