"""Verbs about dead letters: look, replay, drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from actors.admin import Caller, Refused
from crewlet.node import dead_letters
from crewlet.node.verbs.operation import AnyOperation, Operation, Rows
from crewlet.node.view import NodeView

NAMED = 20
"""Ids that the record of an act names; of more it names none."""


class Listing(Struct, frozen=True, forbid_unknown_fields=True):
    limit: int = 100


class One(Struct, frozen=True, forbid_unknown_fields=True):
    id: str


class Replay(Struct, frozen=True, forbid_unknown_fields=True):
    ids: tuple[str, ...]
    dry_run: bool = False


class Drop(Struct, frozen=True, forbid_unknown_fields=True):
    ids: tuple[str, ...]


class LetterVerbs:
    """One coroutine a verb."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        return {
            "dlq.list": Operation(Listing, self.list),
            "dlq.show": Operation(One, self.show),
            "dlq.replay": Operation(Replay, self.replay, target=_ids),
            "dlq.drop": Operation(Drop, self.drop, target=_ids),
        }

    async def list(self, args: Listing, caller: Caller) -> Rows:
        for letter in await self._node.broker.dead_letters(args.limit):
            yield dead_letters.row_of(letter)

    async def show(self, args: One, caller: Caller) -> Rows:
        letter = await self._node.broker.dead_letter(args.id)
        if letter is None:
            raise Refused("not_found", f"there is no dead letter {args.id}; `crewlet dlq list`")
        yield dead_letters.shown(letter)

    async def replay(self, args: Replay, caller: Caller) -> Rows:
        node = self._node
        seats = tuple(seat.handle for seat in node.company.seats)
        for id in args.ids:
            yield await dead_letters.replay(
                node.broker, node.ledger, id, dry_run=args.dry_run, seats=seats
            )

    async def drop(self, args: Drop, caller: Caller) -> Rows:
        for id in args.ids:
            dropped = await self._node.broker.drop_dead_letter(id)
            yield {"id": id, "dropped": dropped, "note": "" if dropped else "no such dead letter"}


def _ids(args: Any) -> str:
    """Ids are numbers: anything else that somebody typed is not recorded."""
    numbers = len(args.ids) <= NAMED and all(id.isdigit() for id in args.ids)
    return ",".join(args.ids) if numbers else ""
