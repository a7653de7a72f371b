"""Who is in a conversation: fifty seats at most, for thirty days, and unknown is not nobody."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from inbound_bench import START, Bench, on_a_bench

from crewlet.coordination.store import FOLLOWERS
from crewlet.errors import StoreUnavailable
from crewlet.inbound.followers import KEPT, MOST, Followers

TALK = "github:acme/rocket#7"


def test_seats_follow_in_the_order_in_which_they_joined() -> None:
    async def play(bench: Bench) -> None:
        await bench.followers.joined(TALK, ["dev", "ops"], at=START)
        await bench.followers.joined(TALK, ["ci", "dev"], at=START)
        assert await bench.followers.of(TALK, at=START) == ("dev", "ops", "ci")
        assert await bench.followers.of("github:acme/rocket#8", at=START) == ()

    on_a_bench(play)


@pytest.mark.certifies(120)
def test_no_conversation_has_no_followers_and_asks_nobody() -> None:
    async def play(bench: Bench) -> None:
        bench.store_down(True)
        await bench.followers.joined("", ["dev"], at=START)
        await bench.followers.joined(TALK, [], at=START)
        assert await bench.followers.of("", at=START) == ()
        bench.store_down(False)
        assert await bench.client.store.list(FOLLOWERS) == []

    on_a_bench(play)


def test_unknown_is_not_nobody() -> None:
    async def play(bench: Bench) -> None:
        await bench.followers.joined(TALK, ["dev"], at=START)
        bench.store_down(True)
        with pytest.raises(StoreUnavailable):
            await bench.followers.of(TALK, at=START)
        with pytest.raises(StoreUnavailable):
            await bench.followers.joined(TALK, ["ops"], at=START)
        bench.store_down(False)
        assert await bench.followers.of(TALK, at=START) == ("dev",)

    on_a_bench(play)


@pytest.mark.parametrize("value", [b"", b"\xff", b"{}", b'{"identity":"x","seats":{"dev":7}}'])
def test_a_row_that_cannot_be_read_is_unknown_too(value: bytes) -> None:
    async def play(bench: Bench) -> None:
        await bench.followers.joined(TALK, ["dev"], at=START)
        (entry,) = await bench.client.store.list(FOLLOWERS)
        await bench.client.store.put(FOLLOWERS, entry.key, value)
        with pytest.raises(StoreUnavailable, match="cannot be read"):
            await bench.followers.of(TALK, at=START)
        with pytest.raises(StoreUnavailable, match="cannot be read"):
            await bench.followers.joined(TALK, ["ops"], at=START)

    on_a_bench(play)


def test_a_seat_leaves_thirty_days_after_it_was_last_active() -> None:
    async def play(bench: Bench) -> None:
        later = START + timedelta(days=20)
        await bench.followers.joined(TALK, ["dev", "ops"], at=START)
        await bench.followers.joined(TALK, ["ops"], at=later)
        assert await bench.followers.of(TALK, at=START + KEPT) == ("dev", "ops")
        assert await bench.followers.of(TALK, at=START + KEPT + timedelta(seconds=1)) == ("ops",)
        await bench.followers.joined(TALK, ["ci"], at=later + KEPT)
        assert await bench.followers.of(TALK, at=later) == ("ops", "ci")  # dev is out of the row

    on_a_bench(play)


def test_a_conversation_is_kept_for_thirty_days_after_its_last_activity() -> None:
    async def play(bench: Bench) -> None:
        await bench.followers.joined(TALK, ["dev"], at=bench.clock.now())
        await asyncio.sleep(KEPT.total_seconds() - 10)
        await bench.followers.joined(TALK, ["ops"], at=bench.clock.now())
        await asyncio.sleep(20)
        assert await bench.followers.of(TALK, at=bench.clock.now()) == ("ops",)
        await asyncio.sleep(KEPT.total_seconds())
        assert await bench.client.store.list(FOLLOWERS) == []

    on_a_bench(play)


def test_of_fifty_the_one_silent_for_longest_makes_room() -> None:
    async def play(bench: Bench) -> None:
        for number in range(MOST):
            at = START + timedelta(minutes=number)
            await bench.followers.joined(TALK, [f"s{number}"], at=at)
        later = START + timedelta(hours=2)
        await bench.followers.joined(TALK, ["s0"], at=later)
        await bench.followers.joined(TALK, ["new"], at=later)
        now = await bench.followers.of(TALK, at=later)
        assert len(now) == MOST
        assert {"s0", "new"} <= set(now)
        assert "s1" not in now

    on_a_bench(play)


def test_more_than_fifty_at_once_leaves_fifty() -> None:
    async def play(bench: Bench) -> None:
        await bench.followers.joined(TALK, [f"s{n}" for n in range(70)], at=START)
        assert await bench.followers.of(TALK, at=START) == tuple(f"s{n}" for n in range(20, 70))

    on_a_bench(play)


def test_two_nodes_that_write_at_once_lose_nobody() -> None:
    async def play(bench: Bench) -> None:
        other = bench.broker.client("n2")
        await other.start()
        ends = [bench.followers, Followers(other.store)]
        joining = [ends[n % 2].joined(TALK, [f"s{n}"], at=START) for n in range(10)]
        await asyncio.gather(*joining)
        found = await bench.followers.of(TALK, at=START)
        assert sorted(found) == sorted(f"s{n}" for n in range(10))

    on_a_bench(play)
