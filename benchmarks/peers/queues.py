"""The limit: tasks and bare asyncio queues, with nothing of what an actor is.

No address, no dispatch by type, no failure that is caught, no bound, no order of the end.
"""

from __future__ import annotations

import asyncio
import time
from typing import TypeAlias

from benchmarks.peers.face import bursts

Mail: TypeAlias = asyncio.Queue[object]

LATER_S = 3600.0


class Ball:
    """What is sent."""


class Queues:
    """All of it on one loop, which runs while something is measured."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._kept: list[asyncio.Task[None]] = []

    def ping_pong(self, count: int) -> float:
        return self._runner.run(self._ping_pong(count))

    async def _ping_pong(self, count: int) -> float:
        here: Mail = asyncio.Queue()
        there: Mail = asyncio.Queue()
        task = asyncio.create_task(_echo(there, here))
        began = time.process_time()
        for _ in range(count // 2):
            there.put_nowait(Ball)
            await here.get()
        took_s = time.process_time() - began
        task.cancel()
        return took_s

    def one_way(self, count: int) -> float:
        return self._runner.run(self._one_way(count))

    async def _one_way(self, count: int) -> float:
        sink: Mail = asyncio.Queue()
        back: Mail = asyncio.Queue()

        async def handle() -> None:
            while True:
                message = await sink.get()
                if message is not Ball:
                    back.put_nowait(message)

        task = asyncio.create_task(handle())
        began = time.process_time()
        for burst in bursts(count):
            for _ in range(burst):
                sink.put_nowait(Ball)
            sink.put_nowait(burst)
            await back.get()
        took_s = time.process_time() - began
        task.cancel()
        return took_s

    def ask(self, count: int) -> float:
        return self._runner.run(self._ask(count))

    async def _ask(self, count: int) -> float:
        """Each question brings a future along."""
        asked: asyncio.Queue[asyncio.Future[object]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def answer() -> None:
            while True:
                (await asked.get()).set_result(Ball)

        task = asyncio.create_task(answer())
        began = time.process_time()
        for _ in range(count):
            future = loop.create_future()
            asked.put_nowait(future)
            await future
        took_s = time.process_time() - began
        task.cancel()
        return took_s

    def create(self, count: int) -> float:
        return self._runner.run(self._create(count))

    async def _create(self, count: int) -> float:
        began = time.process_time()
        tasks = [asyncio.create_task(_idle(asyncio.Queue())) for _ in range(count)]
        await asyncio.sleep(0)  # all of them wait for mail now
        took_s = time.process_time() - began
        self._kept += tasks
        return took_s

    def wait_for(self, pending: int) -> None:
        self._runner.run(self._wait_for(pending))

    async def _wait_for(self, pending: int) -> None:
        loop = asyncio.get_running_loop()
        for n in range(pending):
            loop.call_later(LATER_S + n, _nothing)

    def close(self) -> None:
        self._runner.close()


async def _echo(here: Mail, there: Mail) -> None:
    while True:
        there.put_nowait(await here.get())


async def _idle(mail: Mail) -> None:
    while True:
        await mail.get()


def _nothing() -> None:
    """What a timer that is never due does."""


def open_peer(name: str) -> Queues:
    return Queues()
