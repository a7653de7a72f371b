"""Deliveries that are drained together: side by side, but in their order where they belong to one
conversation, and each settled by what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inbound_bench import START, Bench, on_a_bench
from test_router import TALK, Post, at_the_post, delivery

from actors.delivery import Ack, Defer, Delivery, Nak, Outcome, Partition, Partly
from crewlet import topics
from crewlet.events import Event, Trace, encode
from crewlet.events import catalogue as types
from crewlet.inbound.drained import BEGIN_WITHIN_S, LATE, routed
from crewlet.inbound.letters import read_together
from crewlet.inbound.side_by_side import Reading, keys_of, predecessors, read

KEYS = st.lists(st.none() | st.frozensets(st.sampled_from("abc")), max_size=12)


def drained(*events: Event) -> Partition:
    made = [
        read_together(Delivery(topics.inbound(), encode(event), 1, at, str(at)))
        for at, event in enumerate(events, 1)
    ]
    return Partition(made[0].key, tuple(made))


@given(KEYS)
def test_whoever_has_something_in_common_waits_for_whoever_came_first(
    keys: Sequence[Collection[str] | None],
) -> None:
    waits = predecessors(keys)
    before: list[set[int]] = []
    for at, own in enumerate(waits):
        assert all(other < at for other in own)
        before.append(set(own).union(*(before[other] for other in own)))
    for at, own in enumerate(keys):
        for other in range(at):
            theirs = keys[other]
            common = own is None or theirs is None or set(own) & set(theirs)
            assert (other in before[at]) >= bool(common)


@given(st.lists(st.sampled_from("abcdefgh"), unique=True))
def test_whoever_has_nothing_in_common_waits_for_nobody(keys: Sequence[str]) -> None:
    assert not any(predecessors([{key} for key in keys]))


def test_a_delivery_is_known_by_its_conversation_and_by_itself() -> None:
    first, second = (read(delivery(id=id)) for id in ("d1", "d2"))
    common = keys_of(first) or frozenset()
    assert TALK in common
    assert common & (keys_of(second) or frozenset()) == {TALK}
    assert keys_of(read(delivery(id="d1"))) == common
    assert keys_of(read(delivery(vendor="nobody", id="d1"))) != keys_of(first)
    assert keys_of(Reading(delivery(), fault="no body")) is not None


# -- each by itself -----------------------------------------------------------------------


class Office:
    """Routes as it is told, and writes down when what began and ended."""

    def __init__(self, bench: Bench, **outcomes: Outcome | float | Exception) -> None:
        self.bench = bench
        self.outcomes = outcomes
        self.log: list[str] = []
        self.most = self.now = 0

    async def route(self, reading: Reading) -> Outcome:
        id = reading.event.id
        self.log.append(f"+{id}")
        self.now += 1
        self.most = max(self.most, self.now)
        told = self.outcomes.get(id, 1.0)
        await asyncio.sleep(told if isinstance(told, float) else 1.0)
        self.now -= 1
        self.log.append(f"-{id}")
        if isinstance(told, Exception):
            raise told
        return Ack() if isinstance(told, float) else told

    async def work(self, *ids: str) -> Outcome | Partly:
        events = [
            Event.new(types.RAW_WEBHOOK, id=id, at=START, trace=Trace.root(), source="t")
            for id in ids
        ]
        return await routed(drained(*events), self.route, self.bench.clock)


def test_what_has_nothing_in_common_is_routed_at_the_same_time() -> None:
    async def main(bench: Bench) -> None:
        office = Office(bench)
        assert await office.work(*"abcdef") == Ack()
        assert office.most == 6 and bench.clock.monotonic() < 1.5

    on_a_bench(main)


def test_copies_of_one_delivery_are_routed_one_after_the_other() -> None:
    async def main(bench: Bench) -> None:
        office = Office(bench)
        assert await office.work("a", "b", "a") == Ack()
        assert office.log[:2] == ["+a", "+b"]
        assert office.log.index("+a", 1) > office.log.index("-a")

    on_a_bench(main)


@pytest.mark.certifies(129)
def test_each_is_settled_by_what_became_of_it() -> None:
    async def main(bench: Bench) -> None:
        office = Office(bench, b=Nak("no"), c=ValueError("broken"))
        outcome = await office.work(*"abcd")
        assert isinstance(outcome, Partly) and sorted(outcome.done) == ["a", "d"]
        assert outcome.rest == Nak("no; ValueError: broken")
        assert await Office(bench, a=Nak("no")).work("a", "a") == Nak("no; no")

    on_a_bench(main)


@pytest.mark.certifies(278)
def test_what_has_waited_for_too_long_goes_back_to_the_head() -> None:
    """Somebody else may have it from 20 s on."""

    async def main(bench: Bench) -> None:
        office = Office(bench, a=BEGIN_WITHIN_S)
        assert await office.work("a", "b", "a") == Ack()  # of one id: routed once is enough
        assert office.log.count("+a") == 1
        office = Office(bench)
        keys = drained(*(delivery(id=id) for id in ("d1", "d2")))

        async def slow(reading: Reading) -> Outcome:
            await asyncio.sleep(BEGIN_WITHIN_S)
            return Ack()

        outcome = await routed(keys, slow, bench.clock)
        assert outcome == Partly((keys.letters[0].id,), Defer(LATE, retry_after_s=0.0))

    on_a_bench(main)


# -- the router itself --------------------------------------------------------------------


@pytest.mark.certifies(115, 129)
def test_who_is_addressed_first_follows_what_is_drained_along_with_it() -> None:
    async def play(post: Post) -> None:
        first, second = drained(
            delivery("@octo-dev look", id="d1"), delivery("and this", id="d2")
        ).letters
        # Whatever their own clocks say: the order of the mailbox counts.
        assert await post.router.run(Partition("drained", (second, first))) == Ack()
        assert await post.waiting() == {"dev": 2, "triage": 2}
        assert len(await post.deliveries()) == 2

    at_the_post(play)
