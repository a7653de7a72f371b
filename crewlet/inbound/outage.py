"""An outage of what a seat's handler needs, as a value: when it is asked again, and how long it
is one and the same.

Two ways to ask. A handler's own probe costs nothing, so that it may be asked every ten minutes
for ever. Without one the next delivery is the probe, and a message has 25 of them: that spacing
goes on doubling, since capped at ten minutes it would spend them all in four hours.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, structs

FIRST_S: Final = 5.0
"""Between the first failure and the first probe: 14 doublings of it are a day."""

LONGEST_FREE_S: Final = 600.0
"""Between two probes that cost nothing."""

LONGEST_ASKED_S: Final = 24 * 3600.0
"""The longest `Retry-After` that is believed: a slip of its sender must not end a seat."""

JITTER: Final = 0.1
"""Seats of one provider do not come back in the same moment: a wait is longer by up to this."""

STALE_S: Final = 3600.0
"""What fails so long after it was to be asked again, with nothing heard in between, is an outage
of its own. An hour: where each failure began a new one, a day would still cost 24 deliveries."""

MOST_DOUBLINGS: Final = 20
"""Two months: nobody waits for longer to be asked again."""


class Outage(Struct, frozen=True, kw_only=True):
    """Of one seat. `at` is when it was last heard of, and `wait_s` how long from then on nobody
    is asked; `spent` deliveries it has cost, and `probes` that cost nothing since the last of
    them have failed."""

    since: datetime
    reason: str
    at: datetime
    wait_s: float
    spent: int = 1
    probes: int = 0

    @property
    def next_at(self) -> datetime:
        """When the next probe is."""
        return self.at + timedelta(seconds=self.wait_s)


def failed(
    known: Outage | None, *, at: datetime, reason: str, retry_after_s: float, draw: float
) -> Outage:
    """A turn could not be worked: the outage that begins so, or how the `known` one goes on.
    `draw` from 0 to 1 is its share of the jitter."""
    if known is None or _is_stale(known, at):
        known = Outage(since=at, reason=reason, at=at, wait_s=0.0, spent=0)
    spent = known.spent + 1
    wait_s = _wait_s(_doubled(spent), retry_after_s, draw)
    return structs.replace(known, reason=reason, at=at, wait_s=wait_s, spent=spent, probes=0)


def probed(
    known: Outage, *, at: datetime, reason: str, retry_after_s: float, draw: float
) -> Outage:
    """A probe that cost nothing found it going on."""
    probes = known.probes + 1
    spacing_s = min(LONGEST_FREE_S, _doubled(known.spent + probes))
    wait_s = _wait_s(spacing_s, retry_after_s, draw)
    return structs.replace(known, reason=reason, at=at, wait_s=wait_s, probes=probes)


def draw_of(handle: str, known: Outage | None) -> float:
    """The jitter's share for a seat's next wait: spread over the seats, the same in each run."""
    nth = f"{known.spent}/{known.probes}" if known else "0/0"
    digest = hashlib.sha256(f"{handle}:{nth}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def _is_stale(known: Outage, at: datetime) -> bool:
    return (at - known.next_at).total_seconds() > max(STALE_S, known.wait_s)


def _doubled(nth: int) -> float:
    return float(FIRST_S * 2.0 ** min(nth - 1, MOST_DOUBLINGS))


def _wait_s(spacing_s: float, retry_after_s: float, draw: float) -> float:
    """Never shorter than either asks for."""
    asked_s = min(LONGEST_ASKED_S, max(0.0, retry_after_s))
    return max(spacing_s, asked_s) * (1.0 + JITTER * draw)
