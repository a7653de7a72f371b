"""Plays the steps of `crewlet.testing.steps` around a fleet whose nodes hear late.

Each node decides from the rows that it last heard of. A write goes through only where its row is
still the one that was decided from, as the store has it: what else would put a seat on two nodes.
"""

from __future__ import annotations

from functools import singledispatchmethod

from small_fleet import SHED_LIMIT, SmallFleet

from actors.machines.placement import Board, Demand, Member, Moves, Place, fair_shares, may_work
from crewlet.testing import steps


class Player(SmallFleet):
    def __init__(self, demands: list[Demand]) -> None:
        super().__init__({f"s{number:02}": demand for number, demand in enumerate(demands)})
        self.views: dict[str, tuple[dict[str, Member], dict[str, Place]]] = {}
        self.holds: dict[str, set[str]] = {}

    # -- the steps ------------------------------------------------------------------------

    @singledispatchmethod
    def play(self, step: steps.FleetStep) -> None:
        raise TypeError(step)

    @play.register
    def _(self, step: steps.Joined) -> None:
        if step.node not in self.members:
            self.members[step.node] = Member(step.node, step.labels)
            self.holds[step.node] = set()
            self.hear(step.node)

    @play.register
    def _(self, step: steps.Died) -> None:
        if step.node in self.members:
            self.die(step.node)
            del self.holds[step.node], self.views[step.node]

    @play.register
    def _(self, step: steps.Closed) -> None:
        self.change(step.node, open=False)

    @play.register
    def _(self, step: steps.Opened) -> None:
        self.change(step.node, open=True)

    @play.register
    def _(self, step: steps.Labelled) -> None:
        if (member := self.members.get(step.node)) is not None:
            self.members[step.node] = Member(step.node, step.labels, member.open)

    @play.register
    def _(self, step: steps.Ordered) -> None:
        """The holder lets go of it for the node that the operator named."""
        if not self.rows:
            return
        handle = sorted(self.rows)[step.seat % len(self.rows)]
        self.let_go(self.rows[handle].holder, handle)
        self.move(handle, step.node)

    @play.register
    def _(self, step: steps.Heard) -> None:
        if step.node in self.members:
            self.hear(step.node)

    @play.register
    def _(self, step: steps.Turned) -> None:
        if step.node in self.members:
            self.turn(step.node)

    # -- a node ---------------------------------------------------------------------------

    def hear(self, node: str) -> None:
        self.views[node] = dict(self.members), dict(self.rows)

    def change(self, node: str, *, open: bool) -> None:
        if (member := self.members.get(node)) is not None:
            self.members[node] = Member(node, member.labels, open)

    def turn(self, node: str) -> None:
        """What it gives up it has; what it takes was free in its eyes, and fits it."""
        members, rows = self.views[node]
        board = Board(node, [members[id] for id in sorted(members)], list(rows.values()))
        moves = fair_shares(board)
        self.plausible(board, moves)
        may_shed = SHED_LIMIT
        for give_up in moves.give_up:
            if give_up.reason == "balance":
                may_shed -= 1
                if may_shed < 0:
                    continue
            if self.stands(node, give_up.handle):
                self.let_go(node, give_up.handle)
                self.set(give_up.handle, holder="", preferred=give_up.to, ordered=False)
        for handle in moves.take:
            if self.stands(node, handle):
                self.claim(node, handle)

    def stands(self, node: str, handle: str) -> bool:
        """Nobody has written the row since this node heard of it."""
        return self.rows[handle] is self.views[node][1][handle]

    def claim(self, node: str, handle: str) -> None:
        ours = self.rows[handle].preferred == node
        ordered = ours and self.rows[handle].ordered
        preferred = node if ours else ""
        self.set(handle, holder=node, preferred=preferred, ordered=ordered, waits=False)
        self.holds[node].add(handle)

    def let_go(self, node: str, handle: str) -> None:
        if node in self.holds:
            self.holds[node].discard(handle)

    # -- what always holds ----------------------------------------------------------------

    def plausible(self, board: Board, moves: Moves) -> None:
        rows = {place.handle: place for place in board.places}
        me = next(member for member in board.members if member.id == board.me)
        assert len(set(moves.take)) == len(moves.take)
        assert not {one.handle for one in moves.give_up} & set(moves.take)
        for give_up in moves.give_up:
            assert rows[give_up.handle].holder == board.me, "gives up what it has not"
            assert give_up.to != board.me
        for handle in moves.take:
            assert not rows[handle].holder, "takes what somebody has"
            assert may_work(me, rows[handle].demand), "takes what it may not work"
        self.within_its_share(board, moves)

    def within_its_share(self, board: Board, moves: Moves) -> None:
        """No node is given more than its share of a group, but by an operator."""
        for demand, places in self.groups_of(board).items():
            able = sum(may_work(member, demand) for member in board.members)
            taken = [place for place in places if place.handle in moves.take]
            held = sum(place.holder == board.me for place in places)
            by_order = sum(place.ordered and place.preferred == board.me for place in taken)
            if taken:
                assert len(taken) <= max(0, -(-len(places) // able) - held) + by_order

    @staticmethod
    def groups_of(board: Board) -> dict[Demand, list[Place]]:
        found: dict[Demand, list[Place]] = {}
        for place in board.places:
            found.setdefault(place.demand, []).append(place)
        return found

    def check(self) -> None:
        """Each seat is on one node at most, and that is the one that its row names."""
        for node, held in self.holds.items():
            assert held == {one.handle for one in self.rows.values() if one.holder == node}
        together = [handle for held in self.holds.values() for handle in held]
        assert len(together) == len(set(together)), "a seat on two nodes"
