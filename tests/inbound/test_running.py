"""The node's gate and the list of what runs."""

from __future__ import annotations

import asyncio

import pytest
from inbound_bench import START, Bench, on_a_bench

from actors.delivery import Ack, Nak
from crewlet.inbound.running import RunningTurn, Turns


def turn(id: str, seat: str = "dev") -> RunningTurn:
    return RunningTurn(id, seat, "chat:C1", START)


@pytest.mark.certifies(95)
def test_so_many_run_at_once_and_the_others_wait_in_their_order() -> None:
    async def play(_: Bench) -> None:
        turns = Turns(2)
        inside: list[int] = []
        order: list[int] = []

        async def work(number: int) -> None:
            async with turns.slot():
                inside.append(number)
                order.append(number)
                assert len(inside) <= 2
                await asyncio.sleep(10.0)
                inside.remove(number)

        await asyncio.gather(*(work(number) for number in range(5)))
        assert order == [0, 1, 2, 3, 4]
        assert asyncio.get_running_loop().time() == 30.0

    on_a_bench(play)


@pytest.mark.certifies(95)
@pytest.mark.parametrize("how", ["raises", "cancelled inside", "cancelled outside"])
def test_a_place_is_given_back_whatever_happened(how: str) -> None:
    async def play(_: Bench) -> None:
        turns = Turns(1)

        async def work() -> None:
            async with turns.slot():
                if how == "raises":
                    raise RuntimeError("boom")
                await asyncio.sleep(100.0)

        tasks = [asyncio.ensure_future(work()) for _ in range(2)]
        await asyncio.sleep(1.0)
        tasks[0 if how == "cancelled inside" else 1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with turns.slot():
            pass

    on_a_bench(play)


def test_what_runs_is_listed_until_it_has_ended() -> None:
    turns = Turns(2)
    turns.started(turn("t1"))
    turns.started(turn("t2", "ops"))
    turns.overdue("t1", "timeout after 5 s")
    turns.overdue("gone", "timeout")
    dev = turns.running("dev")
    assert dev is not None and dev.overdue == "timeout after 5 s"
    assert [one.turn_id for one in turns.all_running()] == ["t1", "t2"]
    turns.ended("t1", START)
    turns.ended("t1", START)
    turns.ended("gone", START)
    assert turns.running("dev") is None
    assert (turns.tally("dev").turns, turns.tally("dev").last_turn) == (1, START)
    assert turns.tally("ops").turns == 0
    assert turns.tally("nobody").last_turn is None


def test_why_the_last_turn_failed_is_known_until_one_does_not() -> None:
    turns = Turns(1)
    turns.fared("dev", Nak(reason="ValueError: no"))
    assert (turns.tally("dev").failure, turns.tally("ops").failure) == ("ValueError: no", "")
    turns.fared("dev", Ack())
    assert turns.tally("dev").failure == ""
