"""Crashes, outages, brakes and detaches at any moment, in any order; then all must be well."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest
from runtime_bench import BOX, NAME, Bench, play

from actors.delivery import Ack, BatchOptions, Defer, Nak, Outcome, Partition
from actors.machines import signals
from actors.messages import ListInFlight, NodeDrained
from actors.ports import Unavailable

MAIL = 40
STEPS = 80
LATE: set[asyncio.Task[object]] = set()


class Company:
    """A handler that notes what it begins and what it ends, and is not always successful."""

    def __init__(self, bench: Bench, chance: Random) -> None:
        self.bench = bench
        self.chance = chance
        self.at_it: set[str] = set()
        self.done: list[str] = []
        self.wrong: list[str] = []
        self.calm = False

    async def run(self, partition: Partition) -> Outcome:
        ids = {letter.id for letter in partition.letters}
        if ids & self.at_it:
            self.wrong.append(f"in two hands: {ids & self.at_it}")
        if ids & set(self.done):
            self.wrong.append(f"worked again after it was done: {ids & set(self.done)}")
        self.at_it |= ids
        try:
            await asyncio.sleep(self.chance.uniform(0.0, 3.0))
        finally:
            self.at_it -= ids
        outcome = Ack() if self.calm else self.chance.choice([Ack(), Ack(), Nak("no"), Defer("no")])
        if outcome == Ack():
            self.done += ids
        return outcome


async def step(bench: Bench, chance: Random, company: Company, sent: list[str]) -> None:
    runtime = bench.runtime
    match chance.randrange(14):
        case 0 if bench.actor().state == "running":  # else it breaks again as it begins
            bench.crash()
        case 1:
            bench.broker.down = True
        case 2 | 3 | 4:
            bench.broker.down = False
        case 5:
            calls = ("attach", "settle", "release", "reclaim")
            bench.client.slow = {call: chance.uniform(0.0, 1.5) for call in calls}
        case 6:
            behind(runtime.brake(NAME, BOX, signals.Hold("x")))
        case 7 | 8:
            behind(runtime.brake(NAME, BOX, signals.Lift("x")))
        case 9:
            behind(runtime.detach(NAME, BOX))
        case 10 | 11:
            await attach(bench, company)
        case 12 | 13 if not bench.broker.down and len(sent) < MAIL:
            texts = [f"c{chance.randrange(5)}:{len(sent) + index}" for index in range(4)]
            sent += texts
            await bench.send(*texts)


def behind(call: Coroutine[Any, Any, object]) -> None:
    """An operator who is told late does not hold up the others."""
    LATE.add(task := asyncio.get_running_loop().create_task(call))
    task.add_done_callback(LATE.discard)


async def attach(bench: Bench, company: Company) -> bool:
    """True once it is attached; a broker that is away, or has not let go yet, says so."""
    try:
        async with asyncio.timeout(10):
            await bench.attach(company.run)
    except Unavailable:
        return False
    except TimeoutError:  # slow to begin again: it is the plan by now
        return False
    except ValueError:  # attached already
        return True
    return True


@pytest.mark.certifies(50, 67, 84, 136)
@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_all_mail_is_worked_and_none_twice(seed: int) -> None:
    async def test(bench: Bench) -> None:
        chance = Random(seed)
        company = Company(bench, chance)
        sent: list[str] = []
        bench.options = lambda: BatchOptions(chance.randrange(1, 8), chance.choice([0.0, 2.0]))
        await attach(bench, company)
        for _ in range(STEPS):
            await step(bench, chance, company, sent)
            await asyncio.sleep(chance.uniform(0.0, 2.0))
        assert company.wrong == []
        drains = chance.random() < 0.5
        company.calm, bench.broker.down, bench.client.slow = True, False, {}
        if drains:  # at any moment: what is not done is fetchable at once
            assert await bench.runtime.drain(60.0) == NodeDrained((), ())
            assert not company.at_it and company.wrong == []
            left = [text for text, _ in await bench.successor()]
            await asyncio.sleep(31)  # the longest backoff
            left += [text for text, _ in await bench.successor()]
            assert sorted(left + company.done) == sorted(sent)
            return
        await asyncio.sleep(60)
        await bench.runtime.brake(NAME, BOX, signals.Lift("x"))
        while not await attach(bench, company):
            await asyncio.sleep(1)
        await asyncio.sleep(400)
        assert company.wrong == []
        assert sorted(company.done) == sorted(sent) and await bench.settled()
        gateway = bench.address("gateway")
        assert await bench.runtime._base.aask(gateway, ListInFlight(), 1) == ()

    play(test, seed=seed)
