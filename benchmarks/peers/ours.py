"""Our own system: actors on one asyncio loop, typed dispatch, sends committed at the end."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from msgspec import Struct

from actors.system import Actor, Address, AsyncioSystemBase, handles
from benchmarks.peers.face import bursts

LATER_S: Final = 3600.0
ANSWER_S: Final = 60.0


class Ball(Struct, frozen=True):
    """What is sent."""


class Start(Struct, frozen=True):
    """Play with `other` until `count` messages were handled, or sent to it in bursts."""

    other: Address
    count: int
    done: asyncio.Future[None]


class Burst(Struct, frozen=True):
    """The end of a burst: the sender waits for it to come back."""


class Wait(Struct, frozen=True):
    """Set so many timers."""

    count: int


BALL: Final = Ball()


class Echo(Actor):
    """Sends back what it is sent; takes what is sent one way."""

    @handles(Ball, Burst)
    def on_ball(self, message: object, sender: Address) -> None:
        self.tell(sender, message)


class Player(Actor):
    """Serves, and counts what comes back."""

    @handles(Start)
    def on_start(self, start: Start, sender: Address) -> None:
        self.other, self.left, self.done = start.other, start.count // 2, start.done
        self.tell(self.other, BALL)

    @handles(Ball)
    def on_ball(self, ball: Ball, sender: Address) -> None:
        self.left -= 1
        if self.left > 0:
            self.tell(self.other, ball)
        else:
            self.done.set_result(None)


class Sink(Actor):
    """Handles what it is sent, and says when a burst is over."""

    @handles(Ball)
    def on_ball(self, ball: Ball, sender: Address) -> None:
        """That was it."""

    @handles(Burst)
    def on_burst(self, burst: Burst, sender: Address) -> None:
        self.tell(sender, burst)


class Source(Actor):
    """Sends bursts."""

    @handles(Start)
    def on_start(self, start: Start, sender: Address) -> None:
        self.other, self.left, self.done = start.other, bursts(start.count), start.done
        self.on_burst(Burst(), sender)

    @handles(Burst)
    def on_burst(self, burst: Burst, sender: Address) -> None:
        if not self.left:
            self.done.set_result(None)
            return
        for _ in range(self.left.pop()):
            self.tell(self.other, BALL)
        self.tell(self.other, burst)


class Sleeper(Actor):
    """Has timers."""

    @handles(Wait)
    def on_wait(self, wait: Wait, sender: Address) -> None:
        for n in range(wait.count):
            self.timer(f"timer {n}", LATER_S + n, BALL)
        self.tell(sender, wait)


class Ours:
    """One system, whose actors stay until the process ends."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._base = AsyncioSystemBase()

    def ping_pong(self, count: int) -> float:
        return self._runner.run(self._play(Player, Echo, count))

    def one_way(self, count: int) -> float:
        return self._runner.run(self._play(Source, Sink, count))

    async def _play(self, first: type[Actor], second: type[Actor], count: int) -> float:
        base = self._base
        one, two = base.spawn(first), base.spawn(second)
        done = asyncio.get_running_loop().create_future()
        began = time.process_time()
        base.tell(one, Start(two, count, done))
        await done
        took_s = time.process_time() - began
        await asyncio.gather(base.stop(one, ANSWER_S), base.stop(two, ANSWER_S))
        return took_s

    def ask(self, count: int) -> float:
        return self._runner.run(self._ask(count))

    async def _ask(self, count: int) -> float:
        base = self._base
        echo = base.spawn(Echo)
        began = time.process_time()
        for _ in range(count):
            await base.aask(echo, BALL, ANSWER_S)
        took_s = time.process_time() - began
        await base.stop(echo, ANSWER_S)
        return took_s

    def create(self, count: int) -> float:
        return self._runner.run(self._create(count))

    async def _create(self, count: int) -> float:
        """They are made in the order in which they were asked for."""
        base = self._base
        began = time.process_time()
        for _ in range(count - 1):
            base.spawn(Echo)
        await base.aask(base.spawn(Echo), BALL, ANSWER_S)
        return time.process_time() - began

    def wait_for(self, pending: int) -> None:
        self._runner.run(self._wait_for(pending))

    async def _wait_for(self, pending: int) -> None:
        await self._base.aask(self._base.spawn(Sleeper), Wait(pending), ANSWER_S)

    def close(self) -> None:
        self._runner.run(self._base.shutdown_async())
        self._runner.close()


def open_peer(name: str) -> Ours:
    return Ours()
