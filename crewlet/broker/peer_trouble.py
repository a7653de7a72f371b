"""Whom a server turned away, or was turned away by: a peer of another authority or another secret,
or one that goes by the name of a member.

Its log is the only place that says so; a member that is not let in otherwise waits for a leader
without knowing why.
"""

from __future__ import annotations

import re
from typing import Final

from crewlet.broker.server_log import LogTail

AGAIN_S: Final = 60.0
"""A member dials several times a second: the same word of the same host is news this often."""

_REFUSED: Final = re.compile(
    r"\[ERR\] (\S+):\d+ - [rl]id:\d+ - "
    r"(.*(?:handshake error|authentication error|Authorization Violation|duplicate name).*)"
)


def refusals(lines: str) -> list[tuple[str, str]]:
    """The host and the server's words of each, in order, repeated ones once."""
    found = ((host, words.strip()[:200]) for host, words in _REFUSED.findall(lines))
    return list(dict.fromkeys(found))


class PeerTrouble:
    """Reads a server's log as it grows."""

    def __init__(self, tail: LogTail) -> None:
        self._tail = tail
        self._said: dict[tuple[str, str], float] = {}

    def look(self, now: float) -> list[tuple[str, str]]:
        """What was not said in the last AGAIN_S before `now`, seconds of a monotonic clock."""
        fresh = [one for one in refusals(self._tail.new_lines()) if self._due(one, now)]
        self._said = {one: at for one, at in self._said.items() if now - at < AGAIN_S}
        self._said |= dict.fromkeys(fresh, now)
        return fresh

    def _due(self, one: tuple[str, str], now: float) -> bool:
        said = self._said.get(one)
        return said is None or now - said >= AGAIN_S
