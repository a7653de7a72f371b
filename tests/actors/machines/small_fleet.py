"""A fleet in rounds: all nodes decide on the same board, and what they decide is carried out."""

from __future__ import annotations

from collections import Counter

from actors.machines.placement import Board, Demand, Member, Moves, Place, fair_shares, may_work

SHED_LIMIT = 2


class SmallFleet:
    """Who holds what, between two rounds. `rows` are the seats by handle."""

    def __init__(self, demands: dict[str, Demand]) -> None:
        self.rows = {handle: Place(handle, demand) for handle, demand in demands.items()}
        self.members: dict[str, Member] = {}
        self.moved: Counter[str] = Counter()

    def set(self, handle: str, **words: object) -> None:
        row = self.rows[handle]
        now = {name: getattr(row, name) for name in Place.__struct_fields__}
        self.rows[handle] = Place(**{**now, **words})

    def die(self, node: str) -> None:
        del self.members[node]
        for handle, row in self.rows.items():
            if row.holder == node:
                self.set(handle, holder="")

    def move(self, handle: str, to: str) -> None:
        self.set(handle, holder="", preferred=to, ordered=True)

    def decisions(self) -> dict[str, Moves]:
        members = [self.members[id] for id in sorted(self.members)]
        places = list(self.rows.values())
        return {id: fair_shares(Board(id, members, places)) for id in sorted(self.members)}

    def round(self) -> int:
        """How many seats changed hands, or were given up."""
        decisions = self.decisions()
        changes = 0
        for id, moves in decisions.items():
            may_shed = SHED_LIMIT
            for give_up in moves.give_up:
                if give_up.reason == "balance":
                    if not may_shed:
                        continue
                    may_shed -= 1
                assert self.rows[give_up.handle].holder == id
                self.set(give_up.handle, holder="", preferred=give_up.to, ordered=False)
                changes += 1
        for id, moves in decisions.items():
            for handle in moves.take:
                row = self.rows[handle]
                assert not row.holder, "taken by two"
                ours = row.preferred == id
                self.set(
                    handle,
                    holder=id,
                    preferred=id if ours else "",
                    ordered=ours and row.ordered,
                    waits=False,
                )
                self.moved[handle] += 1
                changes += 1
        return changes

    def settle(self, rounds: int = 80) -> None:
        """Rounds until nothing moves; what moves for ever is a fault."""
        for _ in range(rounds):
            if not self.round():
                return
        raise AssertionError("it does not come to rest")

    # -- what may be asked -----------------------------------------------------------------

    def groups(self) -> dict[Demand, list[Place]]:
        found: dict[Demand, list[Place]] = {}
        for row in self.rows.values():
            found.setdefault(row.demand, []).append(row)
        return found

    def able(self, demand: Demand) -> list[str]:
        return [id for id, member in sorted(self.members.items()) if may_work(member, demand)]

    def held(self, demand: Demand | None = None) -> Counter[str]:
        return Counter(
            row.holder for row in self.rows.values() if row.holder and demand in (None, row.demand)
        )
