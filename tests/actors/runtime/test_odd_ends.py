"""What nobody should do, and what happens then: unknown names, broken callbacks, full mailboxes."""

from __future__ import annotations

import asyncio

import pytest
from runtime_bench import BOX, NAME, Bench, play

from actors.delivery import Ack, BatchOptions, Outcome, Partition
from actors.gateway import Gateway
from actors.machines import signals
from actors.messages import ListInFlight, NodeDrained, RecallBox
from actors.runtime import MAILBOX_BOUND
from actors.system import AsyncioSystemBase, run_virtual


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unclassifiable:
    """An outcome that breaks whoever looks at what it is."""

    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise RuntimeError("nobody's business")


# -- names ----------------------------------------------------------------------------


def test_an_unknown_box_is_answered_and_kills_nothing() -> None:
    async def test(bench: Bench) -> None:
        await bench.attach()
        runtime = bench.runtime
        assert await runtime.brake(NAME, "nowhere", signals.Hold("run")) is None
        assert await runtime.detach(NAME, "nowhere") is False
        with pytest.raises(ValueError, match="nowhere"):
            await runtime.attach(NAME, "nowhere", bench.consumed())
        await bench.send("a")
        await asyncio.sleep(1)
        assert bench.seen == [("a", 1)] and bench.actor().restarts == 0

    play(test)


def test_an_unknown_consumer_is_answered_and_kills_nothing() -> None:
    async def test(bench: Bench) -> None:
        runtime = bench.runtime
        assert await runtime.describe("nobody") is None
        assert await runtime.brake("nobody", BOX, signals.Hold("run")) is None
        assert await runtime.detach("nobody", BOX) is False

    play(test)


# -- handlers -------------------------------------------------------------------------


@pytest.mark.certifies(36)
def test_an_exception_without_words_is_a_failure_of_its_message_alone() -> None:
    async def test(bench: Bench) -> None:
        async def run(partition: Partition) -> Outcome:
            outcome = await bench.run(partition)
            if bench.seen[-1] == ("a", 1):
                raise Unspeakable
            return outcome

        await bench.attach(run)
        await bench.send("a", "b")
        await asyncio.sleep(5)
        assert bench.seen == [("a", 1), ("b", 1), ("a", 2)]
        assert await bench.settled() and bench.actor().restarts == 0

    play(test)


@pytest.mark.certifies(36)
def test_a_turn_that_itself_breaks_is_a_failure_of_its_message_alone() -> None:
    async def test(bench: Bench) -> None:
        async def run(partition: Partition) -> Outcome:
            outcome = await bench.run(partition)
            return Unclassifiable() if bench.seen[-1] == ("a", 1) else outcome  # type: ignore[return-value]

        await bench.attach(run)
        await bench.send("a", "b")
        await asyncio.sleep(5)
        assert bench.seen == [("a", 1), ("b", 1), ("a", 2)]
        assert await bench.settled() and bench.actor().restarts == 0

    play(test)


@pytest.mark.certifies(84)
def test_a_drain_hears_of_a_turn_that_breaks_after_its_box_was_let_go() -> None:
    async def test(bench: Bench) -> None:
        async def run(partition: Partition) -> Outcome:
            await asyncio.sleep(10)
            return Unclassifiable()  # type: ignore[return-value]

        await bench.attach(run)
        await bench.send("a")
        await asyncio.sleep(1)
        await bench.runtime.detach(NAME, BOX)
        began = asyncio.get_running_loop().time()
        assert await bench.runtime.drain(60.0) == NodeDrained((), ())
        assert asyncio.get_running_loop().time() - began <= 10

    play(test)


@pytest.mark.certifies(77)
def test_options_that_cannot_be_told_are_as_they_were() -> None:
    async def test(bench: Bench) -> None:
        told: list[BatchOptions] = []
        batches: list[int] = []
        bench.options = lambda: told[0]  # IndexError as long as nothing was told

        async def run(partition: Partition) -> Outcome:
            batches.append(len(partition.letters))
            return Ack()

        async def work(*texts: str) -> list[int]:
            batches.clear()
            await bench.runtime.brake(NAME, BOX, signals.Hold("test"))
            await bench.send(*texts)
            await bench.runtime.brake(NAME, BOX, signals.Lift("test"))
            await asyncio.sleep(5)
            assert await bench.settled()
            return batches

        await bench.attach(run)
        assert await work("c:1", "c:2", "c:3") == [3], "what is built in, until something is told"
        told.append(BatchOptions(max_batch=2))
        assert await work("c:4", "c:5", "c:6") == [2, 1]
        told.clear()
        assert await work("c:7", "c:8", "c:9") == [2, 1], "the last that were told"
        assert bench.actor().restarts == 0

    play(test)


# -- the gateway ----------------------------------------------------------------------


def test_no_command_of_a_large_node_is_dropped() -> None:
    """3,500 seats with three boxes each, all of which have something to say at once."""

    async def main() -> None:
        base = AsyncioSystemBase(mailbox_bound=MAILBOX_BOUND)
        base.bind_loop()
        gateway = base.spawn(Gateway, None)
        for ticket in range(3 * 3500 * 3):
            base.tell(gateway, RecallBox(ticket))
        assert await base.aask(gateway, ListInFlight(), 1) == ()
        await asyncio.sleep(0.01)
        assert base.dead_letters == {}
        await base.shutdown_async()

    run_virtual(main)


def test_a_node_that_lets_go_of_a_thousand_boxes_at_once_drops_no_command() -> None:
    async def test(bench: Bench) -> None:
        boxes = [f"b{index}" for index in range(1000)]
        await bench.runtime.consumer("many", *boxes)
        attach = bench.runtime.attach
        await asyncio.gather(*(attach("many", box, bench.consumed()) for box in boxes))
        assert await bench.runtime.drain(5.0) == NodeDrained((), ())
        assert bench.client.calls.count("release") == 1000
        assert "full" not in bench.runtime._base.dead_letters

    play(test)


def test_a_client_that_raises_what_it_should_not_ends_no_node() -> None:
    async def test(bench: Bench) -> None:
        def say(verdicts: object) -> None:
            raise RuntimeError("a bug of the client")

        bench.client.say = say  # type: ignore[method-assign]
        await bench.attach()
        await bench.send("a", "b")
        await asyncio.sleep(1)
        assert bench.fallen == []
        assert bench.seen == [("a", 1), ("b", 1)] and await bench.settled()

    play(test)


def test_a_gateway_that_breaks_ends_the_node_which_says_so_once() -> None:
    """Nothing is lost: what it held is reclaimed by the next start."""

    async def test(bench: Bench) -> None:
        await bench.attach()
        bench.gate.clear()
        await bench.send("a", "b")
        await asyncio.sleep(1)
        bench.runtime._base.tell(bench.address("gateway"), RecallBox([]))  # type: ignore[arg-type]
        await asyncio.sleep(1)
        (reason,) = bench.fallen
        assert "child failed" in reason and "TypeError" in reason
        with pytest.raises(TimeoutError):
            await bench.runtime.drain(1.0)
        await bench.runtime.stop()
        bench.client.crash()
        heir = Bench(bench.broker, "n2")
        await heir.begin(router=True)
        await heir.runtime.start()
        await asyncio.sleep(1)
        assert heir.seen == [("a", 2), ("b", 2)] and await heir.settled()
        assert await heir.end() == NodeDrained((), ())

    play(test, ends=False)
