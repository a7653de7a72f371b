"""A seat changes hands while a person pauses it, or lets it go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.node.operated import Operated, on_nodes
from tests.node.test_verbs_fleet import owner


@pytest.mark.certifies(147)
@pytest.mark.parametrize("act", ["pause", "resume"])
def test_what_a_person_says_while_a_seat_is_on_its_way_holds_where_it_arrives(act: str) -> None:
    """It was read before the inbox is attached, changes, and is heard while the seat is on no
    node."""

    async def test(*nodes: Operated) -> None:
        mine, other = owner(*nodes)
        if act == "resume":
            await mine.one("seat.pause", handle="dev")
        read = other.node.pauses.holds_of

        async def slowly(handle: str) -> tuple[str, ...]:
            found: Sequence[str] = await read(handle)
            if handle == "dev":
                pauses = mine.node.pauses
                assert await (pauses.pause if act == "pause" else pauses.resume)("dev", "ann")
                await asyncio.sleep(5)
            return tuple(found)

        other.node.pauses.holds_of = slowly  # type: ignore[method-assign]
        await mine.node.send("dev", "hello")
        moving = asyncio.create_task(mine.node.drain(0))
        async with asyncio.timeout(300):
            while await other.node.runtime.describe("dev") is None:
                await asyncio.sleep(0.1)
        await asyncio.sleep(5)
        shown = await other.one("seat.show", handle="dev")
        assert shown["holds"] == (["paused"] if act == "pause" else [])
        await moving

    on_nodes(test, "n1", "n2")
