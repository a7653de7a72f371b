"""The completion ledger: the first writer wins, and a ledger that is silent hides nothing."""

from __future__ import annotations

import asyncio

import pytest
from inbound_bench import START, Bench, on_a_bench

from crewlet.coordination.store import LEDGER
from crewlet.errors import StoreUnavailable
from crewlet.inbound.ledger import Ledger

WEEK_S = 7 * 24 * 3600.0


async def record(ledger: Ledger, *ids: str, seat: str = "dev", turn: str = "t1") -> None:
    await ledger.record(seat, ids, turn_id=turn, node="n1", at=START)


@pytest.mark.certifies(89, 90)
def test_it_answers_for_the_ids_that_a_turn_finished_and_for_no_others() -> None:
    async def play(bench: Bench) -> None:
        await record(bench.ledger, "A", "B")
        worked = await bench.ledger.worked("dev", ["A", "C", "B"])
        assert {id: row.turn_id for id, row in worked.items()} == {"A": "t1", "B": "t1"}
        assert worked["A"].completed_at == START
        assert await bench.ledger.worked("ops", ["A"]) == {}
        assert await bench.ledger.worked("dev", []) == {}

    on_a_bench(play)


@pytest.mark.certifies(90)
@pytest.mark.parametrize("id", ["", " ", "a.b", "*", ">", "a\0b", "ü" * 500, "x" * 10_000])
def test_an_event_id_is_whatever_its_publisher_chose(id: str) -> None:
    async def play(bench: Bench) -> None:
        await record(bench.ledger, id)
        assert list(await bench.ledger.worked("dev", [id, f"{id}."])) == [id]

    on_a_bench(play)


@pytest.mark.certifies(89)
def test_the_first_writer_wins_on_every_node() -> None:
    async def play(bench: Bench) -> None:
        other = bench.broker.client("n2")
        await other.start()
        ledgers = [bench.ledger, Ledger(other.store)]
        await asyncio.gather(
            *(record(ledger, "A", turn=f"t{n}") for n, ledger in enumerate(ledgers))
        )
        await record(ledgers[1], "A", "B", turn="late")
        rows = [await ledger.worked("dev", ["A", "B"]) for ledger in ledgers]
        assert rows[0] == rows[1]
        assert rows[0]["A"].turn_id in ("t0", "t1")
        assert rows[0]["B"].turn_id == "late"

    on_a_bench(play)


@pytest.mark.certifies(91)
def test_unreadable_it_hides_nothing() -> None:
    async def play(bench: Bench) -> None:
        await record(bench.ledger, "A")
        bench.store_down(True)
        assert await bench.ledger.worked("dev", ["A"]) == {}
        bench.store_down(False)
        assert list(await bench.ledger.worked("dev", ["A"])) == ["A"]

    on_a_bench(play)


@pytest.mark.certifies(91)
@pytest.mark.parametrize("value", [b"", b"\xff", b"{}", b'{"turn_id": "\xff"}', b"[" * 9999])
def test_a_row_that_is_no_row_hides_nothing(value: bytes) -> None:
    async def play(bench: Bench) -> None:
        await record(bench.ledger, "A", "B")
        (key,) = [
            entry.key
            for entry in await bench.client.store.list(LEDGER, "dev.")
            if b'"A"' in entry.value
        ]
        await bench.client.store.put(LEDGER, key, value)
        assert list(await bench.ledger.worked("dev", ["A", "B"])) == ["B"]

    on_a_bench(play)


@pytest.mark.certifies(91)
def test_unwritable_it_says_so() -> None:
    async def play(bench: Bench) -> None:
        bench.store_down(True)
        with pytest.raises(StoreUnavailable):
            await record(bench.ledger, "A", "B")
        bench.store_down(False)
        assert await bench.ledger.worked("dev", ["A", "B"]) == {}

    on_a_bench(play)


@pytest.mark.certifies(89)
def test_rows_outlive_every_delivery_of_their_message_and_not_more() -> None:
    async def play(bench: Bench) -> None:
        await record(bench.ledger, "A")
        await asyncio.sleep(WEEK_S - 1)
        assert await bench.ledger.worked("dev", ["A"])
        await asyncio.sleep(2)
        assert not await bench.ledger.worked("dev", ["A"])

    on_a_bench(play)


def test_an_event_that_is_replayed_is_forgotten() -> None:
    async def play(bench: Bench) -> None:
        await record(bench.ledger, "A")
        await record(bench.ledger, "A", seat="ops")
        await bench.ledger.forget("dev", "A")
        await bench.ledger.forget("dev", "unknown")
        assert await bench.ledger.worked("dev", ["A"]) == {}
        assert await bench.ledger.worked("ops", ["A"])

    on_a_bench(play)
