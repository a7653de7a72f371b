"""Detach and drain under faults: nothing is said to be let go of before it is."""

from __future__ import annotations

import asyncio

import pytest
from runtime_bench import BOX, INBOX, NAME, Bench, play

from actors.delivery import Ack, BatchOptions, Delivery, Letter, Nak, Outcome, Partition
from actors.messages import NodeDrained
from actors.ports import Unavailable

MANY = BatchOptions(max_batch=20, linger_s=30.0)


def now() -> float:
    return asyncio.get_running_loop().time()


async def hold_three(bench: Bench) -> None:
    """The consumer collects: three messages are in its hands, and none is worked."""
    bench.options = lambda: MANY
    await bench.attach()
    await bench.send("a", "b", "c")
    await asyncio.sleep(1)
    assert await bench.mail() == (0, 3)


# -- detach ---------------------------------------------------------------------------


@pytest.mark.certifies(50, 67)
def test_a_detach_in_an_outage_answers_within_a_second_and_nothing_starts_any_more() -> None:
    async def test(bench: Bench) -> None:
        await hold_three(bench)
        bench.broker.down = True
        began = now()
        assert await bench.runtime.detach(NAME, BOX)
        assert now() - began <= 1.1
        with pytest.raises(Unavailable, match="not released it yet"):
            await bench.attach()
        await asyncio.sleep(100)
        with pytest.raises(Unavailable, match="not released it yet"):
            await bench.attach()
        assert not await bench.runtime.detach(NAME, BOX), "there is nothing to let go of"
        bench.broker.down = False
        await asyncio.sleep(10)
        assert bench.seen == []
        bench.options = BatchOptions
        await bench.attach()
        await asyncio.sleep(1)
        assert bench.seen == [("a", 2), ("b", 2), ("c", 2)] and await bench.settled()

    play(test)


@pytest.mark.certifies(50, 67)
def test_a_detach_of_a_life_that_is_not_cleared_answers_within_a_second_too() -> None:
    async def test(bench: Bench) -> None:
        await hold_three(bench)
        bench.broker.down = True
        bench.crash()
        await asyncio.sleep(1)
        began = now()
        assert await bench.runtime.detach(NAME, BOX)
        assert now() - began <= 1.1
        with pytest.raises(Unavailable):
            await bench.attach()
        bench.broker.down = False
        await asyncio.sleep(10)
        assert bench.seen == [] and bench.client.calls.count("attach") == 1
        assert await bench.successor() == [("a", 2), ("b", 2), ("c", 2)]

    play(test)


@pytest.mark.certifies(67, 84)
@pytest.mark.parametrize("way", ["detach", "drain"])
def test_a_release_never_overtakes_what_goes_back(way: str) -> None:
    async def test(bench: Bench) -> None:
        await hold_three(bench)
        bench.client.slow["settle"] = 0.7
        bench.client.calls.clear()
        if way == "detach":
            assert await bench.runtime.detach(NAME, BOX)
        else:
            assert await bench.runtime.drain(5.0) == NodeDrained((), ())
        assert bench.client.calls == ["settle", "settled", "release"]
        assert await bench.successor() == [("a", 2), ("b", 2), ("c", 2)]

    play(test)


@pytest.mark.certifies(67, 84)
def test_a_waiting_successor_sees_the_mail_in_its_order() -> None:
    async def test(bench: Bench) -> None:
        await hold_three(bench)
        other = bench.broker.client("n2")
        await other.start()
        attachment = await other.attach(INBOX, 2)
        fetching = asyncio.create_task(other.fetch(attachment, 1, 60.0))
        await asyncio.sleep(1)
        bench.client.slow["settle"] = 0.5
        detaching = asyncio.create_task(bench.runtime.detach(NAME, BOX))
        got = list(await fetching)
        got += await other.fetch(attachment, 20, 0.0)
        assert [delivery.body for delivery in got] == [b"a", b"b", b"c"]
        assert await detaching

    play(test)


# -- the drain ------------------------------------------------------------------------


async def drained_at_once(bench: Bench, bound_s: float = 60.0) -> None:
    began = now()
    drained = await bench.runtime.drain(bound_s)
    assert drained == NodeDrained((), ()) and now() - began < 8
    assert bench.seen == []
    assert await bench.successor() == [("a", 2), ("b", 2), ("c", 2)]


@pytest.mark.certifies(72, 84)
@pytest.mark.parametrize("wait_s", [0.0, 0.3, 0.6])
def test_a_consumer_that_breaks_in_mid_drain_hands_back_all_the_same(wait_s: float) -> None:
    async def test(bench: Bench) -> None:
        await hold_three(bench)
        bench.client.slow["settle"] = 0.5
        draining = asyncio.create_task(drained_at_once(bench))
        await asyncio.sleep(wait_s)
        bench.crash()
        await draining

    play(test)


@pytest.mark.certifies(84)
def test_a_consumer_that_has_broken_and_begins_again_much_later_is_not_waited_for() -> None:
    async def test(bench: Bench) -> None:
        await hold_three(bench)
        bench.broker.down = True  # no new life gets any further than to break again
        for _ in range(12):
            bench.crash()
            await asyncio.sleep(31)
        bench.crash()
        bench.broker.down = False
        await asyncio.sleep(1)
        assert bench.actor().state == "waiting"
        await drained_at_once(bench)

    play(test)


def test_a_drain_of_one_that_keeps_breaking_on_its_mail_is_prompt() -> None:
    async def test(bench: Bench) -> None:
        def breaking(delivery: Delivery) -> Letter:
            raise RuntimeError("a bug")

        bench.read = breaking
        await bench.attach()
        await bench.send("a")
        await asyncio.sleep(100)
        began = now()
        assert await bench.runtime.drain(60.0) == NodeDrained((), ())
        assert now() - began < 1
        assert [text for text, _ in await bench.successor()] == ["a"], "fetchable at once"

    play(test)


@pytest.mark.certifies(72, 84)
@pytest.mark.parametrize("slow_s", [0.0, 2.0])
def test_a_drain_while_an_attach_is_under_way_lets_go_of_it_as_it_comes(slow_s: float) -> None:
    async def test(bench: Bench) -> None:
        bench.client.slow["attach"] = slow_s
        await bench.send("a")
        attaching = asyncio.create_task(bench.attach())
        await asyncio.sleep(slow_s / 2)
        assert await bench.runtime.drain(5.0) == NodeDrained((), ())
        assert bench.client.calls == (["attach", "release"] if slow_s else bench.client.calls)
        async with asyncio.timeout(1):
            await asyncio.gather(attaching, return_exceptions=True)
        assert bench.seen == [] and await bench.successor() == [("a", 1)]

    play(test)


@pytest.mark.certifies(50, 84)
def test_a_drain_while_a_start_waits_for_the_broker_ends_both() -> None:
    async def test(bench: Bench) -> None:
        await bench.begin(router=True)
        await bench.send("a")
        bench.broker.down = True
        starting = asyncio.create_task(bench.runtime.start())
        await asyncio.sleep(10)
        assert await bench.runtime.drain(2.0) == NodeDrained((), ())
        async with asyncio.timeout(1):
            await starting
        bench.broker.down = False
        await asyncio.sleep(30)
        assert bench.seen == [] and await bench.successor() == [("a", 1)]

    play(test, started=False)


@pytest.mark.certifies(72)
def test_a_consumer_that_breaks_after_it_has_drained_attaches_to_nothing() -> None:
    async def test(bench: Bench) -> None:
        await hold_three(bench)
        await drained_at_once(bench)
        bench.crash()
        await asyncio.sleep(60)
        assert bench.client.calls.count("attach") == 1

    play(test)


@pytest.mark.certifies(50, 84)
@pytest.mark.parametrize("detached", [False, True])
def test_a_drain_waits_for_what_the_broker_was_not_told_yet(detached: bool) -> None:
    """The handler is done in the middle of an outage: its work must not be done again."""

    async def test(bench: Bench) -> None:
        bench.gate.clear()
        await bench.attach()
        await bench.send("a")
        await asyncio.sleep(1)
        if detached:
            await bench.runtime.detach(NAME, BOX)
        bench.broker.down = True
        bench.gate.set()
        draining = asyncio.create_task(bench.runtime.drain(30.0))
        await asyncio.sleep(10)
        assert not draining.done()
        bench.broker.down = False
        assert await draining == NodeDrained((), ())
        assert await bench.settled()

    play(test)


@pytest.mark.certifies(50, 84)
def test_a_drain_in_an_outage_that_does_not_end_says_what_it_could_not_let_go_of() -> None:
    async def test(bench: Bench) -> None:
        await hold_three(bench)
        bench.broker.down = True
        began = now()
        drained = await bench.runtime.drain(5.0)
        assert drained.stuck == (NAME,) and now() - began <= 8.1
        await bench.runtime.stop()

    play(test, ends=False)


@pytest.mark.certifies(84)
def test_a_handler_that_does_not_end_is_cut_and_named() -> None:
    async def test(bench: Bench) -> None:
        bench.gate.clear()
        await bench.attach()
        await bench.send("a", "b")
        await asyncio.sleep(1)
        assert await bench.runtime.drain(5.0) == NodeDrained(((NAME, "a"),), ())
        assert bench.seen == [("a", 1)]
        assert await bench.successor() == [("a", 2), ("b", 2)]

    play(test)


@pytest.mark.parametrize("outcome", [Ack(), Nak("boom")])
def test_a_drain_after_a_detach_waits_for_the_handler_that_is_left(outcome: Outcome) -> None:
    async def test(bench: Bench) -> None:
        async def run(partition: Partition) -> Outcome:
            await asyncio.sleep(10)
            return outcome

        await bench.attach(run)
        await bench.send("a")
        await asyncio.sleep(1)
        await bench.runtime.detach(NAME, BOX)
        began = now()
        assert await bench.runtime.drain(60.0) == NodeDrained((), ())
        assert 8 <= now() - began <= 10

    play(test)
