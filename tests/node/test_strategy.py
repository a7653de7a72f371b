"""A node that an embedder gave a placement of his own, and what operators then do."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from actors.machines.placement import Board, GiveUp, Moves, Strategy, may_work
from actors.system import LoopClock, run_virtual
from crewlet import Node
from crewlet.broker.memory import MemoryBroker
from crewlet.company import NodeIdentity, NodeSettings, parse_company
from crewlet.turn import Turn

pytestmark = pytest.mark.certifies(282)

SEATS = ("dev", "ops", "qa")
COMPANY = "name: c\nroles:\n" + "".join(f"  - {{name: {seat}}}\n" for seat in SEATS)


def last_first(board: Board) -> Moves:
    """All seats on the last node by name that may work them; duties too."""
    give_up = [GiveUp(handle, "gone") for handle in board.gone]
    take: list[str] = []
    for place in board.places:
        able = [member.id for member in board.members if may_work(member, place.demand)]
        home = able[-1] if able else ""
        if place.holder == board.me != home:
            give_up.append(GiveUp(place.handle, "balance", home))
        elif not place.holder and home == board.me:
            take.append(place.handle)
    return Moves(tuple(give_up), tuple(take))


def test_seats_are_worked_where_it_says_and_go_back_when_that_node_drains() -> None:
    async def turn(given: Turn) -> str:
        return "done"

    async def main() -> None:
        broker = MemoryBroker()
        strategy: Strategy = last_first
        async with AsyncExitStack() as stack:
            nodes = [
                await stack.enter_async_context(
                    Node(
                        parse_company(COMPANY),
                        turn=turn,
                        settings=NodeSettings(node=NodeIdentity(id=id)),
                        broker=broker.client(id),
                        clock=LoopClock(asyncio.get_running_loop()),
                        web=False,
                        admin=False,
                        strategy=strategy,
                    )
                )
                for id in ("n1", "n2")
            ]
            await asyncio.sleep(60)
            owners = [[node.fleet.owner_of(seat) for seat in SEATS] for node in nodes]
            assert owners == [["n2"] * 3] * 2
            await nodes[1].fleet.drain()
            await asyncio.sleep(5)
            assert [nodes[1].fleet.owner_of(seat) for seat in SEATS] == ["n1"] * 3
            await nodes[0].send("dev", "hello")
            await asyncio.sleep(5)
            assert nodes[0].turns.tally("dev").turns == 1

    run_virtual(main)
