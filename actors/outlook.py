"""What placement decides from: the fleet as this node sees it, as the board of a strategy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import structlog

from actors.fleet import FleetSpec, Opening, member_of
from actors.fleet_messages import Moved, MoveSeat
from actors.holding import ORDERED, UNPREPARED
from actors.machines.fleet_view import FleetView, Standing
from actors.machines.placement import Board, Member, Moves, Place, decide, why_not
from actors.tenure import SEAT, Lease, resource_of

STAND_BACK_S_A_SEAT: Final = 0.02
"""Of a node that died with a thousand seats each of its heirs needs a while for its own share."""


LEFT_S: Final = 0.5
"""So soon a seat that was left to another is looked at again. As that one takes its seats, shares
change, and it may leave us one that we had left to it."""


log = structlog.get_logger(__name__)


class Outlook:
    """The view, and since when seats are free in it. `changes_at`: when a seat that is left to
    another may be ours after all, as of the last board; infinite where there is none."""

    def __init__(self, spec: FleetSpec, view: FleetView) -> None:
        self._spec = spec
        self._view = view
        self._free_since: dict[str, float] = {}
        self._failure = ""
        self.changes_at = float("inf")

    def board(
        self, openings: Sequence[Opening], own: Member, working: Collection[str], now: float
    ) -> Board:
        """`working`: what this node has or takes, whatever the rows say."""
        self.changes_at = float("inf")
        others = [lease for lease in self._view.live(now) if lease.node != own.id]
        members = [own, *(member_of(lease) for lease in others)]
        members.sort(key=lambda member: member.id)
        places = [self._place(opening, now) for opening in openings]
        wanted = {opening.handle for opening in openings}
        gone = [handle for handle in working if handle not in wanted]
        return Board(own.id, members, places, gone)

    def decided(self, board: Board) -> Moves | None:
        """By the strategy; None where it fails: it may be an embedder's, the node outlives it, and
        nothing is moved by it. That is said when it begins, not with each of many looks."""
        try:
            moves = decide(self._spec.strategy, board)
        except Exception as error:
            if self._failure != repr(error):
                log.warning("placement_skipped", reason="the strategy failed", exc_info=error)
            self._failure = repr(error)
            return None
        self._failure = ""
        return moves

    def _place(self, opening: Opening, now: float) -> Place:
        resource = resource_of(opening.handle)
        row = self._view.row(resource)
        holder = self._view.holder(resource, now)
        if holder:
            self._free_since.pop(opening.handle, None)
            waits = False
        else:
            anybodys_at = self._anybodys_at(opening.handle, now)
            waits = now >= anybodys_at
            if not waits:
                meant = row is not None and self._view.is_live(row.preferred, now)
                again_at = anybodys_at if meant else min(anybodys_at, now + LEFT_S)
                self.changes_at = min(self.changes_at, again_at)
        return Place(
            handle=opening.handle,
            demand=opening.demand,
            holder=holder,
            preferred=row.preferred if row else "",
            ordered=row is not None and ORDERED in row.about,
            waits=waits,
            avoid=row.about.get(UNPREPARED, "") if row else "",
        )

    def _anybodys_at(self, handle: str, now: float) -> float:
        since = self._free_since.setdefault(handle, now)
        by_number_s = STAND_BACK_S_A_SEAT * len(self._free_since)
        return since + self._spec.timing.stand_back_s + by_number_s

    def left_alone_s(self, lease: Lease, now: float) -> float:
        """For how long a seat that was let go of is another's, who lives, to take: no look at the
        whole would give it to anybody else before."""
        meant = lease.preferred if lease.released else ""
        if meant in ("", self._spec.node, lease.about.get(UNPREPARED)):
            return 0.0
        if not self._view.is_live(meant, now):
            return 0.0
        return max(0.0, self._anybodys_at(lease.resource.removeprefix(SEAT), now) - now)

    def unadopted(
        self, openings: Sequence[Opening], working: Collection[str], now: float
    ) -> list[str]:
        """Ours by their rows, and nobody here works them: claims whose answer was lost."""
        mine, view = self._spec.node, self._view
        return [
            handle
            for opening in openings
            if (handle := opening.handle) not in working
            and view.standing(resource_of(handle), now) is Standing.HELD
            and view.holder(resource_of(handle), now) == mine
        ]

    def moved(
        self, wanted: MoveSeat, working: Collection[str], letting_go: Collection[str], now: float
    ) -> Moved:
        """Whether a seat can be sent there. One that we are `letting_go` of may be kept, as any
        other node may be named while its turn still runs."""
        handle, mine = wanted.handle, self._spec.node
        stays = handle in working and handle not in letting_go
        if wanted.to == mine == self._view.holder(resource_of(handle), now) and stays:
            return Moved(f"{handle} is worked on {mine} already", already=True)
        return Moved(self._refused(wanted, working, now))

    def _refused(self, wanted: MoveSeat, working: Collection[str], now: float) -> str:
        view, mine = self._view, self._spec.node
        holder = view.holder(resource_of(wanted.handle), now)
        if holder != mine:
            return f"{wanted.handle} is not worked here, but on {holder or 'no node'}"
        if wanted.handle not in working:
            return f"{wanted.handle} is not worked here yet: try again in a moment"
        live = view.live(now)
        there = next((lease for lease in live if lease.node == wanted.to), None)
        if there is None:
            known = ", ".join(lease.node for lease in live)
            return f"no node {wanted.to} is in the fleet; there are: {known}"
        demand = next(
            (o.demand for o in self._spec.seats() or () if o.handle == wanted.handle), None
        )
        if demand is None:
            return f"the company has no seat {wanted.handle}"
        why = why_not(member_of(there), demand)
        return f"{wanted.to} may not work {wanted.handle}: {why}" if why else ""
