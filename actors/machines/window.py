"""How much is done at a time, found by trying: one more where it goes quickly, fewer where not.

Where many things wait for one processor, doing more of them at once only has each take longer;
where they wait for a broker that is some way away, doing fewer leaves both idle. Nobody knows
before which it is.
"""

from __future__ import annotations

from typing import Final

FIRST: Final = 4.0
LEAST: Final = 2.0
MOST: Final = 64.0

AGE: Final = 1.0002
"""By how much the quickest of all is forgotten with each that follows. Thousands later it is
another day; within a thousand a line that grows must not pass for how long things take."""


class Window:
    """`quick_s`: what is done within this did not stand in a line. Where nothing is that quick,
    what took twice as long as the quickest has."""

    def __init__(self, quick_s: float) -> None:
        self._quick_s = quick_s
        self._size = FIRST
        self._best_s = float("inf")

    @property
    def size(self) -> int:
        """So many at a time."""
        return int(self._size)

    def done(self, took_s: float) -> None:
        """One more has been done."""
        step = 1.0 / self._size
        self._best_s = min(took_s, self._best_s * AGE)
        quick = took_s <= max(self._quick_s, 2.0 * self._best_s)
        self._size = min(MOST, max(LEAST, self._size + (step if quick else -step)))

    def close(self) -> None:
        """One was not done at all."""
        self._size = LEAST
