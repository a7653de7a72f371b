"""What one node knows of the fleet: the rows it has heard, and since when.

It is a prefix of what was written (docs/adr/0009), so whoever sees a seat taken under a session
has seen that session. It is never proof: what is decided from it is carried out by a write that
fails if the view was old.
"""

from __future__ import annotations

from enum import Enum

from msgspec.structs import replace

from actors.machines.timing import Timing, patience_s
from actors.tenure import MAIL_OUT, NODE, SEAT, WATCHED_S, Lease


class Standing(Enum):
    """Of a seat: nobody's, somebody's, or of a session that may be over and is not ended yet."""

    FREE = "free"
    HELD = "held"
    SILENT = "silent"


class FleetView:
    """`now` is this node's monotonic clock; the clocks of others are never looked at."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._nodes: dict[str, Lease] = {}
        self._silent_at: dict[str, float] = {}
        self._held: dict[str, Lease] = {}
        self._gone_until: dict[str, float] = {}
        self._unsure_until: dict[str, float] = {}

    def saw(self, lease: Lease, now: float) -> bool:
        """Take note of a row; False for what is no news."""
        rows = self._nodes if lease.resource.startswith(NODE) else self._held
        key = lease.node if rows is self._nodes else lease.resource
        known = rows.get(key)
        if not lease.owner:
            return self._deleted(rows, key, now)
        if known is not None and known.revision >= lease.revision:
            return False
        rows[key] = lease
        if rows is self._nodes:
            self._silent_at[key] = now + patience_s(lease.about, self._timing.ttl_s)
            return known is None or _differs(known, lease)
        if not lease.released:
            self._taken(lease, now)
        return True

    def _taken(self, lease: Lease, now: float) -> None:
        session = self._nodes.get(lease.node)
        if session is None:
            return
        if session.revision == 0:
            # Taken after its node's row was taken away: under a session that is not heard yet,
            # and that may count from one again.
            del self._nodes[lease.node]
        elif session.revision < lease.revision:
            self._unsure_until[lease.resource] = now + patience_s(session.about, self._timing.ttl_s)

    def _deleted(self, rows: dict[str, Lease], key: str, now: float) -> bool:
        """Somebody took the row away, or all of them. Whoever held it may not know yet, so that
        it stays held for a TTL. Epochs go on from where they were; what is written there next may
        count its revisions from one again."""
        known = rows.get(key)
        if known is None:
            return False
        rows[key] = replace(known, released=True, revision=0, about={MAIL_OUT: f"{WATCHED_S:.3f}"})
        self._gone_until[known.resource] = now + patience_s(known.about, self._timing.ttl_s)
        return True

    def _was_deleted(self, lease: Lease, now: float) -> bool:
        return lease.revision == 0 and now < self._gone_until.get(lease.resource, now)

    def _is_unsure(self, lease: Lease, session: Lease, now: float) -> bool:
        """The seat was taken after what is known of its node was written: by one that did not
        know yet that its session was over, or under another after a wipe that was not heard."""
        until = self._unsure_until.get(lease.resource, now)
        return session.revision < lease.revision and now < until

    # -- nodes ----------------------------------------------------------------------------

    def session(self, node: str) -> Lease | None:
        """The last row of a node, ended or not."""
        return self._nodes.get(node)

    def sessions(self) -> list[Lease]:
        return [self._nodes[node] for node in sorted(self._nodes)]

    def is_live(self, node: str, now: float) -> bool:
        """Its session stands, and was seen renewed within the TTL."""
        lease = self._nodes.get(node)
        return lease is not None and not lease.released and not self._silent(node, now)

    def live(self, now: float) -> list[Lease]:
        """The sessions that stand, by node."""
        return [lease for lease in self.sessions() if self.is_live(lease.node, now)]

    def to_end(self, now: float) -> list[Lease]:
        """Sessions that nobody has seen renewed for a whole TTL: whoever may, ends them by a
        write on the revision seen here."""
        silent = (lease for lease in self.sessions() if not lease.released)
        return [lease for lease in silent if self._silent(lease.node, now)]

    def next_silence(self) -> float:
        """When the next session will have been silent for a TTL, unless it is renewed."""
        standing = (node for node, lease in self._nodes.items() if not lease.released)
        return min((self._silent_at[node] for node in standing), default=float("inf"))

    def _silent(self, node: str, now: float) -> bool:
        return now >= self._silent_at[node]

    # -- what is held -----------------------------------------------------------------------

    def row(self, resource: str) -> Lease | None:
        return self._held.get(resource)

    def rows(self) -> list[Lease]:
        """Every seat's and duty's row, by resource."""
        return [self._held[resource] for resource in sorted(self._held)]

    def standing(self, resource: str, now: float) -> Standing:
        lease = self._held.get(resource)
        if lease is None:
            return Standing.FREE
        if lease.released:
            return Standing.SILENT if self._was_deleted(lease, now) else Standing.FREE
        session = self._nodes.get(lease.node)
        if session is None or session.epoch < lease.session:
            return Standing.HELD  # not heard yet
        if self._was_deleted(session, now):
            return Standing.SILENT
        if session.epoch > lease.session or session.released:
            return Standing.SILENT if self._is_unsure(lease, session, now) else Standing.FREE
        return Standing.SILENT if self._silent(lease.node, now) else Standing.HELD

    def holder(self, resource: str, now: float) -> str:
        """The node that has it; empty where nobody has."""
        lease = self._held.get(resource)
        return lease.node if lease and self.standing(resource, now) is not Standing.FREE else ""

    def died(self, resource: str) -> bool:
        """What somebody had in flight may still be out: its last holder did not give it up, or
        never took over the mail of the one before, or its row is gone and nobody knows."""
        lease = self._held.get(resource)
        return lease is None or not lease.released or MAIL_OUT in lease.about

    def seats_of(self, node: str, now: float) -> list[str]:
        """The handles that a node holds, sorted."""
        mine = [
            lease.resource.removeprefix(SEAT)
            for lease in self._held.values()
            if lease.node == node
            and lease.resource.startswith(SEAT)
            and self.standing(lease.resource, now) is not Standing.FREE
        ]
        return sorted(mine)


def _differs(known: Lease, lease: Lease) -> bool:
    """More than a renewal."""
    return (
        known.epoch != lease.epoch
        or known.released != lease.released
        or known.owner != lease.owner
        or known.about != lease.about
    )
