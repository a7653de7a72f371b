"""Seats that came to nothing here a moment ago: what is not tried again at once."""

from __future__ import annotations

from typing import Final

from actors.fleet_messages import SeatGone
from actors.tenure import Lease, resource_of

RETAKE_S: Final = 0.1
"""How long a seat that was claimed in vain is left alone: by then its new row has been heard."""

_STAND_BACK: Final = frozenset({"it could not be established", "the completion was refused"})
"""Reasons after which a seat is left alone for a TTL: trying at once would end the same."""


class Setbacks:
    """`now` is this node's monotonic clock."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._not_before: dict[str, float] = {}
        self._outrun: dict[str, int] = {}

    def met(self, gone: SeatGone, now: float) -> None:
        """It was to be ours, or was, and is not."""
        pause_s = self._ttl_s if gone.reason in _STAND_BACK else RETAKE_S
        self._not_before[gone.handle] = now + pause_s
        self._outrun[resource_of(gone.handle)] = gone.outrun

    def heard(self, lease: Lease) -> None:
        """There is news of its row."""
        self._outrun.pop(lease.resource, None)

    def pause_s(self, handle: str, now: float) -> float:
        """For how long it is not to be tried."""
        return max(0.0, self._not_before.get(handle, now) - now)

    def outrun(self, resource: str, row: Lease | None) -> bool:
        """What we know of it is known not to be its last row: that is still on its way to us."""
        return self._outrun.get(resource) == (row.revision if row else 0)
