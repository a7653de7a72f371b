"""The ledger under a fence: recorded once, by the holder, or not at all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from actors.tenure import Fence, Fenced
from crewlet.broker.memory import MemoryBroker
from crewlet.coordination.store import LEASES, Store
from crewlet.errors import StoreUnavailable
from crewlet.inbound.ledger import Ledger
from crewlet.testing import run_virtual
from tests.coordination.stores import both, run

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)


async def record(ledger: Ledger, fence: Fence, *ids: str, turn: str = "t1") -> None:
    await ledger.record("dev", ids, turn_id=turn, node="n1", at=AT, fence=fence)


async def taken(store: Store) -> Fence:
    return Fence("seat:dev", 1, await store.put(LEASES, "seat.dev", b"ours"))


async def turns(ledger: Ledger, *ids: str) -> dict[str, str]:
    return {id: row.turn_id for id, row in (await ledger.worked("dev", ids)).items()}


@both
@pytest.mark.certifies(271)
def test_the_holder_s_completion_is_recorded_and_a_former_holder_s_is_not(
    kind: str, tmp_path: Path
) -> None:
    async def play(store: Store, peer: Store) -> None:
        ledger, theirs = Ledger(store), Ledger(peer)
        fence = await taken(store)
        await record(ledger, fence, "A")
        await record(ledger, fence, "B", "C")
        after = await taken(peer)
        for ids in (["D"], ["D", "E"], ["A"], ["A", "D"]):
            with pytest.raises(Fenced):
                await record(ledger, fence, *ids, turn="late")
        await record(theirs, after, "D", turn="t2")
        expected = {"A": "t1", "B": "t1", "C": "t1", "D": "t2"}
        assert await turns(ledger, *"ABCDE") == expected

    run(kind, tmp_path, play)


@both
def test_what_some_turn_finished_stays_and_the_rest_is_recorded(kind: str, tmp_path: Path) -> None:
    async def play(store: Store, peer: Store) -> None:
        ledger, fence = Ledger(store), await taken(peer)
        await record(ledger, fence, "A", "B")
        await record(ledger, fence, "A", turn="t2")
        await record(ledger, fence, "B", "C", "D", "A", turn="t2")
        await record(ledger, fence, turn="nothing")
        assert await turns(ledger, *"ABCD") == {"A": "t1", "B": "t1", "C": "t2", "D": "t2"}
        await ledger.forget("dev", "A")
        await record(ledger, fence, "A", "B", turn="t3")
        assert await turns(ledger, "A", "B") == {"A": "t3", "B": "t1"}

    run(kind, tmp_path, play)


@both
def test_of_two_turns_with_the_same_trigger_one_is_recorded(kind: str, tmp_path: Path) -> None:
    async def play(store: Store, peer: Store) -> None:
        ledgers, fence = [Ledger(store), Ledger(peer)], await taken(store)
        await asyncio.gather(
            *(record(ledgers[n % 2], fence, "A", f"own-{n}", turn=f"t{n}") for n in range(6))
        )
        rows = await turns(ledgers[0], "A", *(f"own-{n}" for n in range(6)))
        assert rows.pop("A") in {f"t{n}" for n in range(6)}
        assert rows == {f"own-{n}": f"t{n}" for n in range(6)}

    run(kind, tmp_path, play)


@pytest.mark.certifies(270)
def test_a_silent_store_records_nothing_that_could_be_acknowledged() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client = broker.client("n1")
        await client.start()
        ledger, fence = Ledger(client.store), await taken(client.store)
        broker.shelves.down = True
        with pytest.raises(StoreUnavailable):
            await record(ledger, fence, "A", "B")
        broker.shelves.down = False
        assert await turns(ledger, "A", "B") == {}
        await record(ledger, fence, "A", "B")
        assert await turns(ledger, "A", "B") == {"A": "t1", "B": "t1"}

    run_virtual(main)
