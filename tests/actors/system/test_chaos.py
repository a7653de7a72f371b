"""Whatever a tree of actors does to itself, in any order: what begins ends, and runs once."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest
from msgspec import Struct

from actors.system import (
    Actor,
    Address,
    AsyncioSystemBase,
    ChildFailed,
    EffectEnded,
    Supervision,
    Terminated,
    VirtualLoop,
    handles,
    run_virtual,
)

RULES = [
    Supervision(on_failure=action, scope=scope, most=3, within_s=5.0, when_exceeded=exceeded)
    for action in ("restart", "resume", "stop", "escalate")
    for scope in ("one_for_one", "all_for_one")
    for exceeded in ("stop", "escalate")
]


class Act(Struct, frozen=True):
    number: int


class Ledger:
    """What every incarnation, effect and message came to."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.living: Counter[Address] = Counter()
        self.effects = 0
        self.handled: Counter[int] = Counter()
        self.last: dict[tuple[Address, Address], int] = {}
        self.addresses: list[Address] = []
        self.sent = 0


class Monkey(Actor):
    def __init__(self, ledger: Ledger, depth: int) -> None:
        super().__init__()
        self.ledger = ledger
        self.depth = depth
        if ledger.chance.random() < 0.05:
            raise OSError("constructor")

    def pre_start(self) -> None:
        self.ledger.living[self.me] += 1
        assert self.ledger.living[self.me] == 1, "two incarnations at once"
        self.ledger.addresses.append(self.me)
        if self.ledger.chance.random() < 0.05:
            raise OSError("pre_start")

    def post_stop(self) -> None:
        self.ledger.living[self.me] -= 1
        if self.ledger.chance.random() < 0.05:
            raise OSError("post_stop")

    @handles(EffectEnded, Terminated, ChildFailed)
    def on_notice(self, message: object, sender: Address) -> None:
        self.maybe_fail(0.1)

    @handles(Act)
    def on_act(self, message: Act, sender: Address) -> None:
        ledger = self.ledger
        ledger.handled[message.number] += 1
        pair = (sender, self.me)
        assert ledger.last.get(pair, -1) < message.number, "out of order"
        ledger.last[pair] = message.number
        for _ in range(ledger.chance.randrange(3)):
            self.one_act()
        self.maybe_fail(0.15)

    def maybe_fail(self, odds: float) -> None:
        if self.ledger.chance.random() < odds:
            raise ValueError("monkey")

    def one_act(self) -> None:
        ledger, chance = self.ledger, self.ledger.chance
        match chance.randrange(8):
            case 0 if self.depth < 4:
                self.spawn(Monkey, ledger, self.depth + 1, supervision=chance.choice(RULES))
            case 1:
                self.effect(self.work(chance.random() * 3), "work")
            case 2:
                self.cancel("work")
            case 3:
                ledger.sent += 1
                self.timer(str(chance.randrange(3)), chance.random() * 3, Act(ledger.sent))
            case 4:
                self.cancel_timer(str(chance.randrange(3)))
            case 5 if chance.random() < 0.3:
                self.stop()
            case 6:
                self.watch(chance.choice(ledger.addresses))
            case _:
                for _ in range(2):
                    ledger.sent += 1
                    self.tell(chance.choice(ledger.addresses), Act(ledger.sent))

    async def work(self, seconds: float) -> None:
        self.ledger.effects += 1
        try:
            await asyncio.sleep(seconds)
            self.maybe_fail(0.3)
        finally:
            try:
                await asyncio.sleep(0.01)  # may be cancelled too
            finally:
                self.ledger.effects -= 1


@pytest.mark.parametrize("seed", range(40))
def test_what_begins_ends_and_runs_once(seed: int):
    async def main() -> Ledger:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        ledger = Ledger(Random(seed))
        system = AsyncioSystemBase(shuffle=True, mailbox_bound=200)
        reports: list[object] = []
        loop.set_exception_handler(lambda _, context: reports.append(context))
        for _ in range(60):
            system.spawn(Monkey, ledger, 0, supervision=ledger.chance.choice(RULES))
            await asyncio.sleep(0.1)
            for address in ledger.addresses[-6:]:
                ledger.sent += 1
                system.tell(address, Act(ledger.sent))
        assert await system.shutdown_async(60)
        assert system.tree() == () and reports == []
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await asyncio.sleep(120)
        assert not system.ready and not system.signals and not system.outbox
        return ledger

    ledger = run_virtual(main, seed=seed)
    assert sum(ledger.handled.values()) > 200
    assert set(ledger.handled.values()) == {1}
    assert not any(ledger.living.values())
    assert ledger.effects == 0
