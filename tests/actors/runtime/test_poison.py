"""A message whose every run ends the process: it has its budget, and takes no other's along."""

from __future__ import annotations

import asyncio

import pytest
from runtime_bench import INBOX, Bench

from actors.delivery import BUDGET, Ack, BatchOptions, Delivery, Letter, Outcome, Partition
from actors.machines.budget import OVERSPENT
from actors.machines.collection import SUSPECT
from actors.system import run_virtual
from crewlet.broker.memory import MemoryBroker

POISON = "poison"


class Lives:
    """Process after process over one broker; each reclaims what the last one died with."""

    def __init__(self, texts: list[str], oldest: str = "", options: BatchOptions | None = None):
        self.broker = MemoryBroker()
        self.texts = texts
        self.oldest = oldest
        self.options = options or BatchOptions()
        self.ran: list[str] = []
        self.counts: dict[str, int] = {}
        self.lives = 0
        self.reader = self.broker.client("reader")

    async def all_is_settled(self) -> bool:
        (state,) = await self.reader.list(INBOX.topic)
        return state.waiting == state.in_flight == 0

    def read(self, delivery: Delivery) -> Letter:
        text = delivery.body.decode()
        at = 0.0 if text == self.oldest else 100.0 + delivery.position
        return Letter(delivery, text, text, at, None)

    async def live(self) -> bool:
        """One life; True if it died of the poison."""
        self.lives += 1
        died = asyncio.Event()
        bench = Bench(self.broker, f"n{self.lives}")
        bench.read, bench.options = self.read, lambda: self.options

        async def run(partition: Partition) -> Outcome:
            assert not died.is_set(), "a dead process runs nothing"
            for letter in partition.letters:
                self.ran.append(letter.id)
                self.counts[letter.id] = letter.delivery.count or 0
            await asyncio.sleep(1)
            if partition.key == POISON:
                bench.client.crash()
                died.set()
                await asyncio.Event().wait()
            return Ack()

        await bench.begin(router=True, run=run)
        if self.lives == 1:
            await bench.send(*self.texts)
        await bench.runtime.start()
        while not died.is_set() and not await self.all_is_settled():
            await asyncio.sleep(0.25)
        if not died.is_set():
            await bench.end()
            return False
        await bench.runtime.stop()
        return True


@pytest.mark.certifies(43)
@pytest.mark.field("C16")
@pytest.mark.parametrize("place", [0, 10, 19])
@pytest.mark.parametrize("oldest", [False, True])
@pytest.mark.parametrize("linger_s", [0.0, 5.0])
def test_a_poison_dies_of_its_own_budget_and_its_neighbours_are_worked_once(
    place: int, oldest: bool, linger_s: float
) -> None:
    texts = [f"m{index}" for index in range(19)]
    texts.insert(place, POISON)
    lives = Lives(texts, POISON if oldest else "", BatchOptions(linger_s=linger_s))

    async def main() -> None:
        await lives.reader.start()
        while await lives.live():
            assert lives.lives <= BUDGET
        (letter,) = await lives.reader.dead_letters(10)
        assert letter.body == POISON.encode() and OVERSPENT in letter.reason
        assert await lives.all_is_settled()

    run_virtual(main)
    assert lives.ran.count(POISON) == BUDGET
    assert sorted(text for text in lives.ran if text != POISON) == sorted(
        text for text in texts if text != POISON
    ), "every neighbour exactly once"
    assert all(lives.counts[text] <= SUSPECT + 1 for text in texts if text != POISON)
