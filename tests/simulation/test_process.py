"""A process of the world: its own loop and clock; stopped, resumed, killed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from msgspec import Struct

from actors.simulation.process import Process, ProcessClock
from actors.simulation.world import World
from actors.system import Actor, Address, AsyncioSystemBase, Deadlock, handles


class Tick(Struct, frozen=True):
    number: int


class Ticker(Actor):
    """Ticks each second, and writes down when."""

    def __init__(self, diary: list[tuple[float, int]]) -> None:
        super().__init__()
        self.diary = diary

    def pre_start(self) -> None:
        self.timer("tick", 1.0, Tick(1))

    @handles(Tick)
    def on_tick(self, tick: Tick, sender: Address) -> None:
        self.diary.append((round(self.clock.monotonic(), 6), tick.number))
        self.timer("tick", 1.0, Tick(tick.number + 1))


def play(*steps: Coroutine[Any, Any, None], world: World | None = None) -> World:
    world = world or World()

    async def main() -> None:
        for step in steps:
            await step

    world.run(main())
    return world


def begin(process: Process, main: Coroutine[Any, Any, None]) -> None:
    process.call_soon(lambda: process.create_task(main))


def test_actors_live_on_a_process_and_stand_still_while_it_is_stopped():
    world, diary = World(), []
    process = Process(world, "n1", offset=100.0)

    async def body() -> None:
        base = AsyncioSystemBase(clock=ProcessClock(process))
        base.spawn(Ticker, diary)

    async def main() -> None:
        begin(process, body())
        await asyncio.sleep(2.5)
        process.stop_after(0)
        await asyncio.sleep(10)
        assert len(diary) == 2
        process.resume()
        await asyncio.sleep(1.2)
        process.kill()
        await asyncio.sleep(10)

    world.run(main())
    assert diary == [(101.0, 1), (102.0, 2), (112.5, 3), (113.5, 4)]
    assert not process.broken and not world.broken


def test_a_clock_that_drifts_is_the_process_s_own():
    world, told = World(), []
    fast = Process(world, "fast", rate=1.1)
    clock = ProcessClock(fast, skew_s=-50.0)

    async def body() -> None:
        await asyncio.sleep(11)
        told.append((world.now, asyncio.get_running_loop().time(), clock.now().second))

    async def main() -> None:
        begin(fast, body())
        await asyncio.sleep(20)

    world.run(main())
    ((now, monotonic, second),) = told
    assert now == pytest.approx(10.0) and monotonic >= 11.0
    assert second == 20  # ten seconds, less fifty


def test_a_stop_can_fall_between_two_callbacks():
    world, told = World(), []
    process = Process(world, "n1")

    async def main() -> None:
        for number in range(5):
            process.call_soon(told.append, number)
        process.stop_after(2)
        await asyncio.sleep(5)
        assert told == [0, 1] and process.stopped
        process.resume()
        await asyncio.sleep(0.1)

    world.run(main())
    assert told == [0, 1, 2, 3, 4]


def test_what_came_while_it_stood_comes_in_order():
    world, told = World(seed=7), []
    process = Process(world, "n1")

    async def main() -> None:
        process.stop_after(0)
        for number in range(50):
            process.call_at(process.time() + 0.01 * number, told.append, ("timer", number))
            world.call_at(0.01 * number, process.bring, told.append, ("mail", number))
        await asyncio.sleep(5)
        assert told == []
        process.resume()
        await asyncio.sleep(0)

    world.run(main())
    for kind in ("mail", "timer"):
        assert [number for what, number in told if what == kind] == list(range(50))
    assert told != sorted(told)  # and the two are mixed


def test_a_killed_process_runs_none_of_its_cleanup_later():
    world, told = World(), []
    process = Process(world, "n1")

    async def body() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            told.append(process.alive)

    async def main() -> None:
        begin(process, body())
        await asyncio.sleep(1)
        process.kill()
        assert told == [False]  # closed at once, when nothing of it means anything
        await asyncio.sleep(200)

    world.run(main())
    assert told == [False] and not process.broken


def test_timeouts_and_groups_work_as_anywhere():
    world, told = World(), []
    process = Process(world, "n1")

    async def body() -> None:
        try:
            async with asyncio.timeout(1.0):
                await asyncio.gather(asyncio.sleep(5), asyncio.sleep(6))
        except TimeoutError:
            told.append(world.now)
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(1.0, event.set)
        await event.wait()
        told.append(world.now)

    async def main() -> None:
        begin(process, body())
        await asyncio.sleep(10)

    world.run(main())
    assert told == [1.0, 2.0]


def test_what_raises_where_nobody_catches_is_kept():
    world = World()
    process = Process(world, "n1")

    async def main() -> None:
        process.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    world.run(main())
    (error,) = process.broken
    assert isinstance(error, ZeroDivisionError)


def test_a_world_where_nothing_can_happen_says_so():
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        World().run(main())
