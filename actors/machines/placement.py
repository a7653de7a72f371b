"""Who works what: a pure function of the view, the same on every node that sees the same.

Seats with the same demands are a group. Each group is shared over the nodes that may work it,
exactly: counts differ by at most one, and who has one more is decided by who has it already, so
that a stable fleet moves nothing - unless another way would make the nodes more even in all;
duties make room before seats do. A seat that is on its way counts as where it goes. A node gives
up what it has too many of, and takes what the shares say is its own. What an operator moved goes
last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

Reason: TypeAlias = Literal["gone", "role", "placement", "balance"]

ANYWHERE: Final = ""
SEATS: Final = "seats"
WORKERS: Final = "workers"


class Demand(Struct, frozen=True, order=True):
    """Where a seat or a duty may be worked: on the node of this id (empty: any) that has every
    label, and the role."""

    node: str = ANYWHERE
    labels: tuple[tuple[str, str], ...] = ()
    role: str = SEATS


class Member(Struct, frozen=True):
    """A node whose session stands. `open`: it is not leaving. No stated `roles` are all."""

    id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    open: bool = True
    roles: tuple[str, ...] = ()


class Place(Struct, frozen=True):
    """A seat of the company as the view has it. `holder`: the node that has it, empty where
    nobody has. `preferred`: the node it is meant for, or was when that took it; `ordered`: by an
    operator, whatever the shares say. `waits`: free for so long that it is anybody's. `avoid`:
    the node that took it last and could not work it."""

    handle: str
    demand: Demand = Demand()
    holder: str = ""
    preferred: str = ""
    ordered: bool = False
    waits: bool = False
    avoid: str = ""


class Board(Struct, frozen=True):
    """What a strategy decides from, on the node `me`: the `members` by id, `me` among them, and
    every seat and duty of the company in its order. `gone`: what `me` holds and the company has
    not any more."""

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


def decide(strategy: Strategy, board: Board) -> Moves:
    """What a strategy says, as far as it may: it takes nothing that somebody holds or that this
    node may not work; what it gives up without need is balance, which is braked, and nothing else
    is. Raises what the strategy raises, and TypeError for an answer that is no Moves, or where
    something is in it that belongs in none."""
    moves = strategy(board)
    if not isinstance(moves, Moves):
        raise TypeError(f"a strategy answers Moves, not {type(moves).__name__}")
    if moves == Moves():  # nearly always, and thousands of places are nobody's concern then
        return moves
    ids = {member.id for member in board.members}
    me = next(member for member in board.members if member.id == board.me)
    places = {place.handle: place for place in board.places}

    def ours(handle: str) -> bool:
        return handle in places and may_work(me, places[handle].demand)

    def called(one: GiveUp) -> GiveUp:
        if ours(one.handle):
            return replace(one, reason="balance")
        return replace(one, reason="placement") if one.reason == "balance" else one

    def sent(one: GiveUp) -> GiveUp:
        """To a node that is there; else whoever wants it has it."""
        return one if one.to in ids or not one.to else replace(one, to="")

    give_up = [called(sent(one)) for one in moves.give_up if one.to != board.me]
    take = [handle for handle in moves.take if ours(handle) and not places[handle].holder]
    unplaceable = [handle for handle in moves.unplaceable if handle in places]
    return Moves(tuple(give_up), tuple(take), tuple(unplaceable))


def fair_shares(board: Board) -> Moves:
    """The strategy of a fleet that was told nothing else."""
    give_up = [GiveUp(handle, "gone") for handle in sorted(board.gone)]
    take: list[str] = []
    unplaceable: list[str] = []
    for shares in _shared(board):
        if not shares.able:
            unplaceable += [place.handle for place in shares.places]
        mine = [place for place in shares.places if place.holder == board.me]
        if board.me not in shares.able:
            why: Reason = "placement" if _is_open(board) else "role"
            heirs = shares.heirs(board.me, mine)
            give_up += [GiveUp(place.handle, why, to) for place, to in heirs]
            continue
        given, room = shares.assigned()
        give_up += shares.shed(board.me, mine, room)
        take += [handle for handle, id in given.items() if id == board.me]
    return Moves(tuple(give_up), tuple(take), tuple(unplaceable))


def may_work(member: Member, demand: Demand) -> bool:
    """It is open, and is what is asked for."""
    if not member.open or demand.node not in (ANYWHERE, member.id):
        return False
    if member.roles and demand.role not in member.roles:
        return False
    return all(member.labels.get(name) == value for name, value in demand.labels)


def why_not(member: Member, demand: Demand) -> str:
    """What of `may_work` is not so, in words; empty where it may."""
    if may_work(member, demand):
        return ""
    if not member.open:
        return "it drains"
    if demand.node not in (ANYWHERE, member.id):
        return f"that is placed on {demand.node}"
    lacking = [
        f"{name}={value}" for name, value in demand.labels if member.labels.get(name) != value
    ]
    return f"it lacks {', '.join(lacking)}" if lacking else f"its roles leave out {demand.role}"


def _is_open(board: Board) -> bool:
    return any(member.id == board.me and member.open for member in board.members)


def _groups(places: Sequence[Place]) -> dict[Demand, list[Place]]:
    groups: dict[Demand, list[Place]] = {}
    for place in sorted(places, key=lambda place: place.handle):
        groups.setdefault(place.demand, []).append(place)
    return groups


def _shared(board: Board) -> list[_Shares]:
    """The groups, each with its quotas; among them no node has the one more of each."""
    totals = {member.id: 0 for member in board.members}
    groups = [
        _Shares([member.id for member in board.members if may_work(member, demand)], places)
        for demand, places in sorted(_groups(board.places).items())
    ]
    for shares in groups:
        shares.choose(totals)
    # Duties come last in order and go first: nobody waits for one while it moves.
    while sum(shares.pass_on(totals) for shares in reversed(groups)):
        pass  # each time the totals are more even, so this ends
    return groups


class _Shares:
    """One group, shared over those who may work it."""

    def __init__(self, able: Sequence[str], places: Sequence[Place]) -> None:
        self.able = frozenset(able)
        self.places = places
        self._free = [place for place in places if not place.holder]
        self._held = dict.fromkeys(able, 0)
        self._claims = dict.fromkeys(able, 0)
        self._ordered = dict.fromkeys(able, 0)
        self._more: set[str] = set()
        for place in places:
            on_its_way = "" if place.waits else place.preferred
            if place.holder in self._held:
                self._held[place.holder] += 1
            if (at := place.holder or on_its_way) in self._held:
                self._claims[at] += 1
                self._ordered[at] += place.ordered and place.preferred == at
        self._by_order: dict[str, int] = {}
        self._base, self._extra = self._divided()

    def _divided(self) -> tuple[int, int]:
        """What each of them has, and how many have one more. Whoever was sent more by an operator
        keeps that, and the others share the rest."""
        rest = sorted(self.able)
        while rest:
            left = len(self.places) - sum(self._by_order.values())
            base, extra = divmod(left, len(rest))
            above = [self._ordered[id] - base for id in rest if self._ordered[id] > base]
            if len(above) <= extra and max(above, default=0) <= 1:
                return base, extra
            self._by_order |= {id: n for id, n in self._ordered.items() if id in rest and n > base}
            rest = [id for id in rest if id not in self._by_order]
        return 0, 0

    def choose(self, totals: dict[str, int]) -> None:
        """Who has the one more: whoever has it already, then whoever has least in all."""

        def rank(id: str) -> tuple[bool, int, int, str]:
            return self._ordered[id] <= self._base, -self._claims[id], totals[id], id

        even = [id for id in self._held if id not in self._by_order]
        self._more = set(sorted(even, key=rank)[: self._extra])
        for id in self._held:
            totals[id] += self._quota(id)

    def pass_on(self, totals: dict[str, int]) -> bool:
        """The one more of whoever has most in all goes to whoever has least, if that evens."""
        givers = [id for id in sorted(self._more) if self._ordered[id] <= self._base]
        takers = sorted(self.able - self._more - self._by_order.keys())
        if not givers or not takers:
            return False
        rich = max(givers, key=lambda id: totals[id])
        poor = min(takers, key=lambda id: totals[id])
        if totals[rich] < totals[poor] + 2:
            return False
        self._more.remove(rich)
        self._more.add(poor)
        totals[rich] -= 1
        totals[poor] += 1
        return True

    def _quota(self, id: str) -> int:
        return self._by_order.get(id, self._base + (id in self._more))

    def assigned(self) -> tuple[dict[str, str], dict[str, int]]:
        """A node for each free seat: the one it is meant for, else whoever lacks most, and what
        each then lacks. A seat that waited too long for its node is another's who has room."""
        room = {id: self._quota(id) - held for id, held in self._held.items()}
        given: dict[str, str] = {}
        for place in sorted(self._free, key=lambda place: not place.ordered):
            meant = place.preferred in room and not place.waits
            if (
                meant
                and place.preferred != place.avoid
                and (place.ordered or room[place.preferred] > 0)
            ):
                given[place.handle] = place.preferred
                room[place.preferred] -= 1
        for place in self._free:
            if place.handle not in given:
                late = place.preferred if place.waits else ""
                bad = place.avoid
                id = min(room, key=lambda id: (id == bad, room[id] <= 0, id == late, -room[id], id))
                given[place.handle] = id
                room[id] -= 1
        return given, room

    def heirs(self, me: str, mine: Sequence[Place]) -> list[tuple[Place, str]]:
        """What we may not work any more, each with who should have it next, in turns; empty where
        nobody may. Others who let go of theirs share the same nodes, in the order of their ids."""
        room = self.assigned()[1] if self.able else {}
        turns = sorted((turn, id) for id, lacks in room.items() for turn in range(lacks))
        others = (place.holder for place in self.places if place.holder not in self.able)
        before = sum("" < holder < me for holder in others)
        heirs = [to for _, to in turns[before:]]
        heirs += [""] * (len(mine) - len(heirs))
        pairs = zip(mine, heirs, strict=False)
        return [(place, "" if to == place.avoid else to) for place, to in pairs]

    def shed(self, me: str, mine: Sequence[Place], room: Mapping[str, int]) -> list[GiveUp]:
        """What we have too many of, each for a node that has too few. What was meant for us
        goes late, and what an operator sent us last."""
        over = {id: max(0, held - self._quota(id)) for id, held in sorted(self._held.items())}
        before = sum(count for id, count in over.items() if id < me)
        lacking = [id for id in sorted(room) for _ in range(max(0, room[id]))]
        heirs = lacking[before : before + over[me]]
        if not heirs:  # nearly always, and the order of thousands is then nobody's concern
            return []

        def last(place: Place) -> tuple[bool, bool, str]:
            meant = place.preferred == me
            return meant and place.ordered, meant, place.handle

        moves: list[GiveUp] = []
        left = sorted(mine, key=last)
        for to in heirs:
            place = next((place for place in left if place.avoid != to), None)
            if place is not None:
                left.remove(place)
                moves.append(GiveUp(place.handle, "balance", to))
        return moves
