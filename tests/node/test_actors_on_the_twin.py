"""The gateway and the mail actor together: lives, tickets, and what is in flight between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from thespian.actors import ActorAddress

from actors.delivery import Ack, BatchOptions, Letter, Outcome, Partition
from actors.messages import Describe
from actors.node import NodeSpec
from actors.ports import Consumed, Unavailable
from actors.runtime import SeatRuntime
from actors.system import EffectEnded, LoopClock, run_virtual
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_client import MemoryClient

INBOX = topics.inbox_of("dev")
NAME, BOX = "dev", "mail"


class Bench:
    """One runtime with one consumer, attached by hand, on the twin."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.client: MemoryClient = self.broker.client("n1")
        self.seen: list[tuple[str, int | None]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fallen: list[str] = []
        self.runtime: SeatRuntime

    async def start(self) -> None:
        await self.client.start()
        await self.client.ensure(INBOX)
        spec, clock = NodeSpec(self.client), LoopClock(asyncio.get_running_loop())
        self.runtime = SeatRuntime(spec, clock=clock, fallen=self.fallen.append)
        await self.runtime.start()
        await self.runtime.consumer(NAME, BOX)

    def consumed(
        self, run: Callable[[Partition], Coroutine[Any, Any, Outcome]] | None = None
    ) -> Consumed:
        return Consumed(INBOX, read, run or self.run, BatchOptions)

    async def run(self, partition: Partition) -> Outcome:
        self.seen += [(letter.id, letter.delivery.count) for letter in partition.letters]
        await self.gate.wait()
        return Ack()

    async def attach(self) -> None:
        await self.runtime.attach(NAME, BOX, self.consumed())

    async def send(self, *texts: str) -> None:
        for text in texts:
            await self.client.publish(INBOX.topic, text.encode(), message_id=text)

    async def settled(self) -> bool:
        (state,) = await self.client.list(INBOX.topic)
        return state.waiting == state.in_flight == 0


def read(delivery: Any) -> Letter:
    text = delivery.body.decode()
    return Letter(delivery, text, text, None, None)


def play(test: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.start()
        await test(bench)
        await bench.runtime.drain(5.0)
        await bench.runtime.stop()
        await bench.client.stop()

    run_virtual(main)


@pytest.mark.certifies(67)
def test_an_outcome_applies_after_its_box_was_let_go() -> None:
    async def test(bench: Bench) -> None:
        bench.gate.clear()
        await bench.attach()
        await bench.send("a")
        await asyncio.sleep(1)
        assert await bench.runtime.detach(NAME, BOX), "it does not wait for the handler"
        assert not await bench.settled()
        bench.gate.set()
        await asyncio.sleep(1)
        assert await bench.settled() and bench.seen == [("a", 1)]

    play(test)


@pytest.mark.certifies(67, 68)
def test_attached_again_the_former_handler_goes_first() -> None:
    async def test(bench: Bench) -> None:
        bench.gate.clear()
        await bench.attach()
        await bench.send("a", "b")
        await asyncio.sleep(1)
        await bench.runtime.detach(NAME, BOX)
        await bench.attach()
        await asyncio.sleep(10)
        assert [text for text, _ in bench.seen] == ["a"], "no second handler beside the first"
        bench.gate.set()
        await asyncio.sleep(1)
        assert [text for text, _ in bench.seen] == ["a", "b"] and await bench.settled()

    play(test)


@pytest.mark.certifies(70)
def test_attaching_twice_is_refused_and_changes_nothing() -> None:
    async def test(bench: Bench) -> None:
        await bench.attach()
        with pytest.raises(ValueError, match="attached here already"):
            await bench.attach()
        await bench.send("a")
        await asyncio.sleep(1)
        assert bench.seen == [("a", 1)] and await bench.settled()

    play(test)


@pytest.mark.certifies(50)
def test_an_attachment_that_the_broker_refuses_is_told() -> None:
    async def test(bench: Bench) -> None:
        bench.broker.down = True
        with pytest.raises(Unavailable):
            await bench.attach()
        bench.broker.down = False
        await bench.attach()
        await bench.send("a")
        await asyncio.sleep(1)
        assert await bench.settled()

    play(test)


@pytest.mark.certifies(50)
def test_a_settlement_is_tried_until_the_broker_takes_it() -> None:
    async def test(bench: Bench) -> None:
        bench.gate.clear()
        await bench.attach()
        await bench.send("a")
        await asyncio.sleep(1)
        bench.broker.down = True
        bench.gate.set()
        await asyncio.sleep(60)
        bench.broker.down = False
        await asyncio.sleep(10)
        assert bench.seen == [("a", 1)] and await bench.settled()

    play(test)


def test_an_idle_consumer_survives_an_outage_of_the_broker() -> None:
    async def test(bench: Bench) -> None:
        await bench.attach()
        await asyncio.sleep(1)
        bench.broker.down = True
        await asyncio.sleep(3600)
        bench.broker.down = False
        await bench.send("a")
        await asyncio.sleep(2)
        assert bench.seen == [("a", 1)] and await bench.settled()

    play(test)


def test_a_gateway_that_breaks_takes_the_tree_down_and_says_so() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.start()
        await bench.attach()
        (root,) = (top for top in bench.runtime.tree() if top.name == "node")  # type: ignore[attr-defined]
        gateway = next(child for child in root.children if child.name == "gateway")
        bench.runtime._base.tell(ActorAddress(gateway.address), EffectEnded(None))
        await asyncio.sleep(1)
        assert bench.fallen and "child failed" in bench.fallen[0]
        with pytest.raises(TimeoutError):
            await bench.runtime._base.aask(bench.runtime._root, Describe(), timeout_s=1)
        await bench.runtime.stop()

    run_virtual(main)
