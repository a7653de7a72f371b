"""An election is told of by the server, and what the old leader lost is taken back at once.

On one server, with the server's word for it said by us: what a real election loses cannot be
foreseen. `test_cluster.py` kills leaders.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from crewlet.broker import names
from crewlet.broker.elections import ELECTED
from tests.broker.real import bodies, box, send, serving

ELECTION = f"{ELECTED}.{names.stream_of(box().topic)}.{names.consumer(box())}"


@pytest.mark.certifies(9)
@pytest.mark.parametrize("epoch", [1, 0])
def test_what_is_out_and_nobodys_comes_back_to_the_one_owner(tmp_path: Path, epoch: int) -> None:
    """A mailbox that several read (epoch 0) is left alone: what is out may be a peer's work."""

    async def play() -> None:
        async with serving(tmp_path, memory=True) as real:
            owner, lost = real.client("owner"), real.client("lost")
            await owner.start()
            await lost.start()
            owner._elections.listen()
            await owner.ensure(box())
            await send(owner, box(), "out")
            taken = await lost.fetch(await lost.attach(box(), epoch), 1, 5.0)
            assert bodies(list(taken)) == ["out"]
            await lost.stop()  # it settled nothing, and says nothing

            attachment = await owner.attach(box(), epoch)
            fetch = asyncio.create_task(owner.fetch(attachment, 5, 3.0))
            await asyncio.sleep(0.2)
            assert not fetch.done()
            owner._wire.send(ELECTION, b"{}")
            back = list(await fetch)
            assert bodies(back) == (["out"] if epoch else [])
            assert [one.count for one in back] == ([2] if epoch else [])
            await owner.stop()

    asyncio.run(asyncio.wait_for(play(), 30))
