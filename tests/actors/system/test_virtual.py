"""The virtual loop: no wall time, no hanging, the same run for the same seed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from actors.system import Deadlock, LoopClock, SystemClock, VirtualLoop, run_virtual

ROOT = Path(__file__).parents[3]


def test_time_jumps():
    async def main() -> float:
        loop = asyncio.get_running_loop()
        clock = LoopClock(loop)
        began, wall = clock.monotonic(), clock.now()
        await asyncio.sleep(86_400)
        assert clock.now() - wall == timedelta(days=1)
        return clock.monotonic() - began

    began = time.monotonic()
    assert run_virtual(main) == 86_400
    assert time.monotonic() - began < 1


def test_a_result_and_an_exception_come_through():
    async def raising() -> None:
        raise LookupError("x")

    async def returning() -> str:
        return "y"

    with pytest.raises(LookupError):
        run_virtual(raising)
    assert run_virtual(returning) == "y"


def test_a_deadlock_is_named():
    async def main() -> None:
        asyncio.create_task(asyncio.Event().wait(), name="the waiter")
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="the waiter"):
        run_virtual(main)


def test_what_is_left_is_cancelled():
    ends = []

    async def left() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            ends.append("cancelled")

    async def main() -> None:
        asyncio.create_task(left())
        await asyncio.sleep(0)

    run_virtual(main)
    assert ends == ["cancelled"]


def test_threads_are_waited_for_in_real_time():
    async def main() -> tuple[str, float]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(30):
            text = await loop.run_in_executor(None, lambda: time.sleep(0.05) or "done")
        return text, loop.time()

    assert run_virtual(main) == ("done", 0.0)


def test_call_soon_threadsafe_wakes_the_loop():
    async def main() -> str:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[str] = loop.create_future()
        work = loop.run_in_executor(None, loop.call_soon_threadsafe, done.set_result, "woken")
        answer = await done
        await work
        return answer

    assert run_virtual(main) == "woken"


def test_times_far_out_do_not_spin():
    async def main() -> None:
        await asyncio.sleep(1e12)
        for _ in range(1_000):
            await asyncio.sleep(1e-7)

    run_virtual(main)


def test_the_seed_is_the_one_source_of_chance():
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return [loop.random.random() for _ in range(3)]

    assert run_virtual(main, seed=3) == run_virtual(main, seed=3) != run_virtual(main, seed=4)


def test_the_machine_s_clock():
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.now().tzinfo is not None


TRACE = """
import asyncio
from actors.system import *
from msgspec import Struct

class Pass(Struct, frozen=True):
    left: int

class Player(Actor):
    def __init__(self, n, ring, trace):
        super().__init__()
        self.n, self.ring, self.trace = n, ring, trace
    @handles(Pass)
    def on_pass(self, message, sender):
        self.trace.append((self.n, message.left, round(self.clock.monotonic(), 6)))
        if message.left % 7 == 3:
            self.timer("later", 0.1 * self.n, Pass(message.left - 1))
        elif message.left:
            for other in {self.ring[self.n - 1], self.ring[self.n - 2]}:
                self.tell(other, Pass(message.left - 1))
        if message.left == 5 and self.n == 4:
            raise ValueError("five")

async def main():
    system, ring, trace = AsyncioSystemBase(shuffle=True), [], []
    for n in range(5):
        ring.append(system.spawn(Player, n, ring, trace, supervision=Supervision(most=10**6)))
    system.tell(ring[0], Pass(9))
    await asyncio.sleep(1000)
    await system.shutdown_async()
    return trace

import sys
print(run_virtual(main, seed=int(sys.argv[1])))
"""


def trace(seed: int, hash_seed: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", TRACE, str(seed)]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout


def test_a_seed_gives_one_trace_under_any_hash_seed():
    first = trace(11, "0")
    assert first.count("(") > 50
    assert first == trace(11, "1") == trace(11, "random")
    assert first != trace(12, "0")
