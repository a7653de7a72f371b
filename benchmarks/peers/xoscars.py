"""xoscar: actors on asyncio loops, called by reference; here all of them in one process."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import xoscar

from benchmarks.peers.face import bursts

HERE: Final = "test://127.0.0.1:0"
"""An address that is served in memory; nothing is faster in xoscar."""


class Echo(xoscar.Actor):  # type: ignore[misc]
    """Answers, and handles what is sent one way."""

    async def ball(self) -> None:
        """That was it."""

    async def burst(self, count: int) -> int:
        return count


class Player(xoscar.Actor):  # type: ignore[misc]
    """Calls: a call and its answer are two messages."""

    async def play(self, other: Any, count: int) -> None:
        for _ in range(count // 2):
            await other.ball()

    async def send(self, other: Any, count: int) -> None:
        for burst in bursts(count):
            for _ in range(burst):
                await other.ball.tell()
            await other.burst(burst)


class Xoscars:
    """One pool without sub-processes."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._pool = self._runner.run(xoscar.create_actor_pool(HERE, n_process=0))

    async def _actor(self, cls: Any) -> Any:
        return await xoscar.create_actor(cls, address=self._pool.external_address)

    def ping_pong(self, count: int) -> float:
        return self._runner.run(self._play("play", count))

    def one_way(self, count: int) -> float:
        return self._runner.run(self._play("send", count))

    async def _play(self, what: str, count: int) -> float:
        one, two = await self._actor(Player), await self._actor(Echo)
        began = time.process_time()
        await getattr(one, what)(two, count)
        return time.process_time() - began

    def ask(self, count: int) -> float:
        return self._runner.run(self._ask(count))

    async def _ask(self, count: int) -> float:
        echo = await self._actor(Echo)
        began = time.process_time()
        for _ in range(count):
            await echo.burst(1)
        return time.process_time() - began

    def create(self, count: int) -> float:
        return self._runner.run(self._create(count))

    async def _create(self, count: int) -> float:
        began = time.process_time()
        for _ in range(count):
            await self._actor(Echo)
        return time.process_time() - began

    def wait_for(self, pending: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._runner.run(self._pool.stop())
        self._runner.close()


def open_peer(name: str) -> Xoscars:
    return Xoscars()
