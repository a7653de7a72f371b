"""The valve against storms: off unless set, counted once for the fleet, open in case of doubt."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inbound_bench import START, Bench, on_a_bench
from msgspec import structs
from test_router import Post, at_the_post, delivery

from actors.delivery import Ack, Nak
from actors.ports import TooLarge
from crewlet import topics
from crewlet.broker.memory_client import MemoryClient
from crewlet.coordination.store import RATES, Conflict
from crewlet.errors import StoreUnavailable
from crewlet.inbound.phrases import PHRASES, RATE_LIMITED
from crewlet.inbound.rate import SKEW_S, RateValve, Window, counted

pytestmark = pytest.mark.certifies(109)


@given(limit=st.integers(1, 5), seconds=st.lists(st.integers(0, 6), max_size=60))
def test_of_one_clock_no_second_gets_more_than_its_limit(limit: int, seconds: list[int]) -> None:
    """Each second gets its limit, and no more: whatever came in the second before."""
    last: Window | None = None
    got: dict[int, int] = {}
    for second in sorted(seconds):
        window = counted(last, second, limit)
        if window is not None:
            last = window
            got[second] = got.get(second, 0) + 1
    assert got == {second: min(limit, seconds.count(second)) for second in set(seconds)}


def test_a_clock_that_is_a_little_behind_counts_in_the_open_window() -> None:
    assert counted(Window(10, 1), 10 - SKEW_S, 2) == Window(10, 2)
    assert counted(Window(10, 2), 9, 2) is None


def test_a_clock_that_is_far_ahead_does_not_shut_the_valve() -> None:
    assert counted(Window(9999, 2), 10, 2) == Window(10, 1)


def test_of_many_at_once_as_many_are_let_through_as_may() -> None:
    async def play(bench: Bench) -> None:
        valve = RateValve(bench.client.store)
        asked = (valve.lets("a-1", 3, wake=f"w{n}", at=START) for n in range(3))
        assert sum(await asyncio.gather(*asked)) == 3
        assert not await valve.lets("a-1", 3, wake="w3", at=START)
        assert await valve.lets("a-2", 3, wake="w4", at=START)
        assert await valve.lets("a-1", 3, wake="w5", at=START + timedelta(seconds=1))

    on_a_bench(play)


def test_without_a_limit_nobody_is_asked() -> None:
    class Store:
        def __getattr__(self, verb: str) -> Any:
            raise AssertionError(f"{verb} was called")

    async def play(bench: Bench) -> None:
        assert await RateValve(Store()).lets("a-1", 0, wake="w", at=START)  # type: ignore[arg-type]

    on_a_bench(play)


@pytest.mark.parametrize("error", [StoreUnavailable("no answer"), Conflict("always first")])
def test_a_store_that_does_not_say_lets_it_through(error: Exception) -> None:
    class Store:
        async def get(self, *_: object) -> Any:
            return None

        async def put(self, *_: object) -> int:
            return 1

        async def create(self, *_: object) -> int:
            raise error

    async def play(bench: Bench) -> None:
        assert await RateValve(Store()).lets("a-1", 1, wake="w", at=START)  # type: ignore[arg-type]

    on_a_bench(play)


def test_a_row_that_nobody_can_read_is_written_over() -> None:
    async def play(bench: Bench) -> None:
        await bench.client.store.put(RATES, "notify.a-1", b"nonsense")
        valve = RateValve(bench.client.store)
        assert await valve.lets("a-1", 1, wake="w1", at=START)
        assert not await valve.lets("a-1", 1, wake="w2", at=START)

    on_a_bench(play)


@given(passes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=40))
def test_a_wake_counts_once_and_hears_the_same_however_often_it_comes(
    passes: list[tuple[int, int]],
) -> None:
    """`passes`: which of six wakes comes, and how many seconds later. One that has stayed
    away for most of a minute is left out: a delivery comes again every half minute."""

    async def play(bench: Bench) -> None:
        valve = RateValve(bench.client.store)
        heard: dict[int, set[bool]] = {}
        counted_in: dict[int, int] = {}
        last: dict[int, float] = {}
        for wake, later_s in passes:
            await asyncio.sleep(later_s)
            at = bench.clock.now()
            if at.timestamp() - last.get(wake, at.timestamp()) > 50.0:
                continue
            last[wake] = at.timestamp()
            first = wake not in heard
            lets = await valve.lets("a-1", 1, wake=f"w{wake}", at=at)
            heard.setdefault(wake, set()).add(lets)
            if first and lets:
                second = int(at.timestamp())
                counted_in[second] = counted_in.get(second, 0) + 1
            await valve.lets("a-1", 1, wake=f"w{wake}", at=at)
        assert all(len(each) == 1 for each in heard.values())
        assert all(n == 1 for n in counted_in.values())

    on_a_bench(play)


# -- in the router --------------------------------------------------------------------


def limited(post: Post, limit: int) -> None:
    seats = (structs.replace(seat, agent_id=f"a-{seat.handle}") for seat in post.company.seats)
    post.company = structs.replace(post.company, seats=tuple(seats), notification_rate_limit=limit)


@pytest.mark.certifies(127)
def test_what_is_over_the_limit_is_skipped_and_said_and_others_are_woken() -> None:
    async def play(post: Post) -> None:
        limited(post, 2)
        for n in range(3):
            assert await post.route(delivery(id=f"d{n}")) == Ack()
        assert await post.waiting() == {"dev": 2, "triage": 2}
        skips = await post.skips()
        assert [(skip.reason, skip.recipients) for skip in skips] == [
            (RATE_LIMITED, ("dev",)),
            (RATE_LIMITED, ("triage",)),
        ]
        assert RATE_LIMITED in PHRASES and "limit" in skips[0].detail
        await asyncio.sleep(1.0)
        await post.route(delivery(id="d9"))
        assert await post.waiting() == {"dev": 3, "triage": 3}

    at_the_post(play)


def test_a_company_without_a_limit_drops_nothing() -> None:
    async def play(post: Post) -> None:
        for n in range(50):
            await post.route(delivery(id=f"d{n}"))
        assert await post.waiting() == {"dev": 50, "triage": 50}
        assert await post.bench.client.store.list(RATES) == []

    at_the_post(play)


def test_a_delivery_that_is_routed_again_takes_nobody_elses_place() -> None:
    """One of its two seats could not be woken: the other has had it, and has room for as many
    others as before. A drop stays a drop: it is on the record."""

    async def play(post: Post) -> None:
        limited(post, 1)
        publish, blocked = MemoryClient.publish, topics.inbox("triage")

        class Choosy(MemoryClient):
            async def publish(
                self, topic: str, body: bytes, *, message_id: str, within_s: float | None = None
            ) -> Any:
                if topic == blocked:
                    raise TooLarge("not this one")
                return await publish(self, topic, body, message_id=message_id)

        post.bench.client.__class__ = Choosy
        assert isinstance(await post.route(delivery(id="d1")), Nak)
        assert await post.route(delivery(id="d2")) == Ack()  # dropped for both
        await asyncio.sleep(30.0)
        post.bench.client.__class__ = MemoryClient
        assert await post.route(delivery(id="d1")) == Ack()
        assert await post.route(delivery(id="d3")) == Ack()
        assert await post.waiting() == {"dev": 2, "triage": 2}

    at_the_post(play)
