"""Who is in a conversation: fifty seats at most, for thirty days, and unknown is not nobody."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from inbound_bench import START, Bench, on_a_bench

from crewlet.coordination.store import FOLLOWERS
from crewlet.errors import StoreUnavailable
from crewlet.events import catalogue as types
from crewlet.inbound.followers import FRESH, KEPT, MOST, Followers, joined_by_router
from crewlet.turn import TurnEvent

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
        last = START + KEPT + FRESH
        assert await bench.followers.of(TALK, at=last) == ("dev", "ops")
        assert await bench.followers.of(TALK, at=last + timedelta(seconds=1)) == ("ops",)
        await bench.followers.joined(TALK, ["ci"], at=later + KEPT + FRESH)
        assert await bench.followers.of(TALK, at=later) == ("ops", "ci")  # dev is out of the row

    on_a_bench(play)


def test_a_conversation_is_kept_for_thirty_days_after_its_last_activity() -> None:
    async def play(bench: Bench) -> None:
        await bench.followers.joined(TALK, ["dev"], at=bench.clock.now())
        await asyncio.sleep((KEPT + FRESH).total_seconds() - 10)
        await bench.followers.joined(TALK, ["ops"], at=bench.clock.now())
        await asyncio.sleep(20)
        assert await bench.followers.of(TALK, at=bench.clock.now()) == ("ops",)
        await asyncio.sleep((KEPT + FRESH).total_seconds())
        assert await bench.client.store.list(FOLLOWERS) == []

    on_a_bench(play)


def test_what_is_there_already_is_written_once_an_hour() -> None:
    """Whoever is active every minute for a month is in the conversation for thirty days more."""

    async def play(bench: Bench) -> None:
        async def revision() -> int:
            (entry,) = await bench.client.store.list(FOLLOWERS)
            return entry.revision

        await bench.followers.joined(TALK, ["dev"], at=START)
        first = await revision()
        await bench.followers.joined(TALK, ["dev"], at=START + FRESH)
        assert await revision() == first
        await bench.followers.joined(TALK, ["dev", "ops"], at=START + FRESH)
        second = await revision()
        assert second > first
        last = START + 2 * FRESH
        await bench.followers.joined(TALK, ["dev"], at=last)  # stands for itself, an hour back
        assert await revision() == second
        assert await bench.followers.of(TALK, at=last + KEPT) == ("dev", "ops")

    on_a_bench(play)


def test_who_joins_upon_what_was_read_before_loses_nobody_that_came_between() -> None:
    async def play(bench: Bench) -> None:
        seen = await bench.followers.look(TALK, at=START)
        await bench.followers.joined(TALK, ["dev"], at=START)
        await bench.followers.joined(TALK, ["ops"], at=START, seen=seen)
        assert await bench.followers.of(TALK, at=START) == ("dev", "ops")

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


def test_a_router_has_written_down_whom_its_wake_addresses() -> None:
    def wake(type: str, addressed: bool) -> TurnEvent:
        return TurnEvent(id="e1", type=type, timestamp=START, addressed=addressed)

    told = wake(types.EXTERNAL_NOTIFICATION, addressed=False)
    addressed = wake(types.EXTERNAL_NOTIFICATION, addressed=True)
    assert joined_by_router([told, addressed], START + FRESH)
    assert not joined_by_router([addressed], START + FRESH + timedelta(seconds=1))
    assert not joined_by_router([told, wake(types.TASK_ASSIGNED, addressed=True)], START)
