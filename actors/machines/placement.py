"""Who works what: a pure function of the view, the same on every node that sees the same.

Seats with the same demands are a group. Each group is shared over the nodes that may work it,
exactly: counts differ by at most one, and who has one more is decided by who has it already, so
that a stable fleet moves nothing. A node gives up what it has too many of, and takes what the
shares say is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

Reason: TypeAlias = Literal["gone", "role", "placement", "balance"]

ANYWHERE: Final = ""


class Demand(Struct, frozen=True, order=True):
    """Where a seat may be worked: on the node of this id (empty: any) that has every label."""

    node: str = ANYWHERE
    labels: tuple[tuple[str, str], ...] = ()


class Member(Struct, frozen=True):
    """A node whose session stands. `open`: it works seats and is not leaving."""

    id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    open: bool = True


class Place(Struct, frozen=True):
    """A seat of the company as the view has it. `holder`: the node that has it, empty where
    nobody has. `preferred`: the node it is meant for; `ordered`: by an operator, whatever the
    shares say. `waits`: free for so long that it is anybody's."""

    handle: str
    demand: Demand = Demand()
    holder: str = ""
    preferred: str = ""
    ordered: bool = False
    waits: bool = False


class Board(Struct, frozen=True):
    """What a strategy decides from. `gone`: what `me` holds and the company has not any more."""

    me: str
    members: Sequence[Member]
    places: Sequence[Place]
    gone: Sequence[str] = ()


class GiveUp(Struct, frozen=True):
    """Of a seat that we hold. `to` is the node that should have it next."""

    handle: str
    reason: Reason
    to: str = ""


class Moves(Struct, frozen=True):
    """What this node should do, in order. `unplaceable`: no live node may work them."""

    give_up: tuple[GiveUp, ...] = ()
    take: tuple[str, ...] = ()
    unplaceable: tuple[str, ...] = ()


Strategy: TypeAlias = Callable[[Board], Moves]
"""An embedder's own must be a pure function of the board, and agree with itself: what one node
gives up for another, that other must want."""


def fair_shares(board: Board) -> Moves:
    """The strategy of a fleet that was told nothing else."""
    give_up = [GiveUp(handle, "gone") for handle in sorted(board.gone)]
    take: list[str] = []
    unplaceable: list[str] = []
    totals: dict[str, int] = {member.id: 0 for member in board.members}
    for demand, places in sorted(_groups(board.places).items()):
        able = [member for member in board.members if may_work(member, demand)]
        if not able:
            unplaceable += [place.handle for place in places]
        shares = _Shares(able, places, totals)
        mine = [place for place in places if place.holder == board.me]
        if board.me not in shares.quota:
            why: Reason = "placement" if _is_open(board) else "role"
            give_up += [GiveUp(place.handle, why) for place in mine]
            continue
        give_up += shares.shed(board.me, mine)
        take += shares.taken_by(board.me)
    return Moves(tuple(give_up), tuple(take), tuple(unplaceable))


def may_work(member: Member, demand: Demand) -> bool:
    """It is open, and is what the seat asks for."""
    if not member.open or demand.node not in (ANYWHERE, member.id):
        return False
    return all(member.labels.get(name) == value for name, value in demand.labels)


def _is_open(board: Board) -> bool:
    return any(member.id == board.me and member.open for member in board.members)


def _groups(places: Sequence[Place]) -> dict[Demand, list[Place]]:
    groups: dict[Demand, list[Place]] = {}
    for place in sorted(places, key=lambda place: place.handle):
        groups.setdefault(place.demand, []).append(place)
    return groups


class _Shares:
    """One group, shared over those who may work it. `totals` runs through all groups, so that
    no node has the one more of each."""

    def __init__(
        self, able: Sequence[Member], places: Sequence[Place], totals: dict[str, int]
    ) -> None:
        self.quota: dict[str, int] = {}
        self._free = [place for place in places if not place.holder]
        self._held = {member.id: 0 for member in able}
        for place in places:
            if place.holder in self._held:
                self._held[place.holder] += 1
        if not able:
            return
        base, extra = divmod(len(places), len(able))
        ranked = sorted(self._held, key=lambda id: (-self._held[id], totals[id], id))
        for rank, id in enumerate(ranked):
            self.quota[id] = base + (rank < extra)
            totals[id] += self.quota[id]
        self._given = self._assign()

    def _assign(self) -> dict[str, str]:
        """A node for each free seat: the one it is meant for, else whoever lacks most. A seat
        that waited too long for its node is anybody's who has room."""
        room = {id: quota - self._held[id] for id, quota in self.quota.items()}
        given: dict[str, str] = {}
        for place in sorted(self._free, key=lambda place: not place.ordered):
            meant = place.preferred in room and not place.waits
            if meant and (place.ordered or room[place.preferred] > 0):
                given[place.handle] = place.preferred
                room[place.preferred] -= 1
        for place in self._free:
            if place.handle not in given:
                id = max(sorted(room), key=lambda id: room[id])
                given[place.handle] = id
                room[id] -= 1
        self._room = room
        return given

    def taken_by(self, me: str) -> list[str]:
        """What was meant for us first, then ours, then what waits for anybody."""
        waits = {place.handle for place in self._free if place.waits}
        ours = [handle for handle, id in self._given.items() if id == me]
        return ours + [h for h, id in self._given.items() if id != me and h in waits]

    def shed(self, me: str, mine: Sequence[Place]) -> list[GiveUp]:
        """What we have too many of, each for a node that has too few. What was meant for us
        goes last."""
        over = {id: max(0, held - self.quota[id]) for id, held in sorted(self._held.items())}
        before = sum(count for id, count in over.items() if id < me)
        lacking = [id for id in sorted(self._room) for _ in range(max(0, self._room[id]))]
        order = sorted(mine, key=lambda place: (place.preferred == me, place.handle))
        return [
            GiveUp(place.handle, "balance", to)
            for place, to in zip(order[: over[me]], lacking[before:], strict=False)
        ]
