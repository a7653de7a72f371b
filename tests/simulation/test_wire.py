"""The wire: in order, taking time, losing what it is told to lose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from actors.ports import Unavailable
from actors.simulation.process import Process
from actors.simulation.wire import Line, Wire
from actors.simulation.world import World


class Bench:
    """One process, one line, and what the broker's end did."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.process = Process(self.world, "n1#1")
        self.line = Line(Random(seed))
        self.wire = Wire(self.world, self.process, self.line)
        self.done: list[object] = []
        self.answers: list[object] = []

    async def serve(self, what: object) -> object:
        self.done.append(what)
        return what

    def ask(self, what: object) -> None:
        async def asked() -> None:
            try:
                self.answers.append(await self.wire.ask(lambda: self.serve(what), Unavailable))
            except Unavailable:
                self.answers.append(None)

        self.process.bring(lambda: self.process.create_task(asked()))

    def play(self, test: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.world.run(test())


def test_asked_and_answered_in_order():
    bench = Bench()

    async def test() -> None:
        for number in range(20):
            bench.ask(number)
        await asyncio.sleep(1)

    bench.play(test)
    assert bench.done == bench.answers == list(range(20))


@pytest.mark.parametrize(("way", "done"), [("up", []), ("down", ["x"])])
def test_a_cut_loses_the_request_or_the_answer(way: str, done: list[str]):
    bench = Bench()
    setattr(bench.line, way, False)

    async def test() -> None:
        bench.ask("x")
        await asyncio.sleep(10)

    bench.play(test)
    assert bench.done == done and bench.answers == [None]


def test_a_lost_leader_takes_writes_and_answers_reads_as_they_were():
    bench = Bench()
    bench.line.mute = bench.line.old = True

    async def read() -> None:
        found = await bench.wire.ask(lambda: bench.serve("read"), Unavailable, read=True)
        bench.answers.append(found)

    async def test() -> None:
        bench.ask("write")
        bench.process.bring(lambda: bench.process.create_task(read()))
        await asyncio.sleep(10)

    bench.play(test)
    assert bench.done == ["read"] and bench.answers == ["read", None]


def test_what_a_stopped_process_had_not_sent_goes_out_when_it_resumes():
    bench = Bench()

    async def test() -> None:
        for number in range(4):
            bench.ask(number)
        await asyncio.sleep(0)
        bench.process.stop_after(0)
        assert bench.wire.hold_back(2) == 2
        await asyncio.sleep(3)
        assert bench.done == [0, 1] and bench.answers == []
        bench.process.resume()
        bench.wire.let_go()
        await asyncio.sleep(1)

    bench.play(test)
    assert bench.done == [0, 1, 2, 3] and sorted(bench.answers) == [0, 1, 2, 3]


def test_a_killed_process_takes_along_what_it_had_not_sent():
    bench = Bench()

    async def test() -> None:
        for number in range(4):
            bench.ask(number)
        await asyncio.sleep(0)
        bench.wire.hold_back(3)
        bench.process.kill()
        await asyncio.sleep(10)

    bench.play(test)
    assert bench.done == [0] and bench.answers == []
