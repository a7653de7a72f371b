"""The wire between one process and the broker: it takes time, and it may lose what it carries.

One connection: in each direction things arrive in the order they were sent. A request that is
lost was never made; an answer that is lost leaves its asker with an unknown outcome. A process
that is stopped or killed may take along the last of what it wrote and the kernel had not sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from actors.simulation.loop import Call
from actors.simulation.process import Process
from actors.simulation.world import World

T = TypeVar("T")

ASK_S: Final = 5.0
"""How long an answer is waited for: the broker client's own deadline."""

NEAR_S: Final = (0.0002, 0.003)
"""One way, on a line that is well (R3 publishes were measured at 1 to 3 ms)."""

PARKED: Final = 0.1
"""How much of what a lost leader was told is carried out by the next one, late."""


class Line:
    """The way of one node to the broker, whichever process uses it. `up` and `down` are False
    while it is cut in that direction; `slow` stretches it; `mute`: the broker takes nothing
    (its leader is lost), and `old`: it ends at the leader that was, which answers reads. What is
    `parked` reached that leader, and may be carried out by the next."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.up = True
        self.down = True
        self.slow = 1.0
        self.mute = False
        self.old = False
        self.ack_delay_s = 0.0
        self.parked: list[Callable[[], object]] = []
        self.lost_up = 0
        self.lost_down = 0

    def reaches(self, read: bool) -> bool:
        return self.up and (not self.mute or (read and self.old))

    def brings(self, read: bool) -> bool:
        return self.down and (not self.mute or (read and self.old))

    def latency(self) -> float:
        least, most = NEAR_S
        return (least + (most - least) * self.random.random()) * self.slow


class Wire:
    """Of one process. What happens at the broker's end happens on the world's loop."""

    def __init__(self, world: World, process: Process, line: Line) -> None:
        self.world = world
        self.process = process
        self.line = line
        self.open = True
        self._up_at = 0.0
        self._down_at = 0.0
        self._watch_at = 0.0
        self._going: deque[Call] = deque()
        self._held: list[Callable[[], object]] = []

    # -- the process's end ----------------------------------------------------------------

    async def ask(
        self,
        serve: Callable[[], Coroutine[Any, Any, T]],
        late: Callable[[], BaseException],
        timeout_s: float = ASK_S,
        *,
        read: bool = False,
    ) -> T:
        """What `serve` comes to at the broker's end; `late()` is raised where no answer came
        within `timeout_s`. A `read` is answered by an old leader, too, which knows no better."""
        answer: asyncio.Future[T] = self.process.create_future()
        process = self.process
        timer = process.call_at(process.time() + timeout_s, _fail, answer, late)
        self.send(partial(self._serve, serve, answer, read), read=read)
        try:
            return await answer
        finally:
            timer.cancel()

    def send(self, act: Callable[[], object], *, read: bool = False) -> None:
        """Have `act` done at the broker's end, unless it is lost on the way."""
        if not self.process.alive:
            return
        if self.process.stopped:  # written by what ran on after the stop: it is in no buffer yet
            self._held.append(act)
            return
        at = max(self._up_at, self.world.now + self.line.latency())
        self._up_at = at
        call = Call(at, self._arrive, (act, read), self.world)
        self._going.append(call)
        self.world.due(at, self.world, call)

    # -- the broker's end -----------------------------------------------------------------

    def _arrive(self, act: Callable[[], object], read: bool) -> None:
        self._going.popleft()
        line = self.line
        if self.open and line.reaches(read):
            act()
        elif self.open and line.up and not read and line.random.random() < PARKED:
            line.parked.append(act)
        else:
            line.lost_up += 1

    def _serve(
        self, serve: Callable[[], Coroutine[Any, Any, T]], answer: asyncio.Future[T], read: bool
    ) -> None:
        """What the broker does gives way to others, and waits for nothing: it needs no task."""
        work = serve()
        try:
            while True:
                if work.send(None) is not None:
                    raise RuntimeError(f"{work!r} waits at the broker's end; give it a task")
        except StopIteration as done:
            self.back(_resolve, answer, done.value, read=read)
        except Exception as error:
            self.back(_fail_with, answer, error, read=read)

    def back(
        self,
        callback: Callable[..., object],
        *args: Any,
        lost: Callable[[], object] | None = None,
        read: bool = False,
    ) -> None:
        """Have the process called, unless that is lost on the way: then `lost` is."""
        at = max(self._down_at, self.world.now + self.line.latency())
        self._down_at = at
        self.world.call_at(at, self._land, callback, args, lost, read)

    def push(self, callback: Callable[..., object], *args: Any, late_s: float = 0.0) -> None:
        """As `back`, for what nobody asked for: it has an order of its own."""
        at = max(self._watch_at, self.world.now + self.line.latency() + late_s)
        self._watch_at = at
        self.world.call_at(at, self._land, callback, args, None, False)

    def _land(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        lost: Callable[[], object] | None,
        read: bool,
    ) -> None:
        if self.open and self.process.alive and self.line.brings(read):
            self.process.bring(callback, *args)
        else:
            self.line.lost_down += 1
            if lost is not None:
                lost()

    # -- stops and the end ----------------------------------------------------------------

    def hold_back(self, most: int) -> int:
        """The process stops (or dies) now: up to `most` of the last things it wrote are still
        its own, and go out when it resumes, if ever. Returns how many."""
        held: list[Callable[[], object]] = []
        while self._going and len(held) < most:
            call = self._going.pop()
            held.append(call._args[0])
            call.cancel()
        self._held.extend(reversed(held))
        self._up_at = self._going[-1]._when if self._going else 0.0
        return len(held)

    def let_go(self) -> None:
        """The process goes on."""
        held, self._held = self._held, []
        for act in held:
            self.send(act)

    @property
    def under_way(self) -> int:
        """Things that were written and have not arrived."""
        return len(self._going)

    def close(self) -> None:
        """The connection is gone for good; what is under way is lost."""
        self.open = False


def _resolve(answer: asyncio.Future[T], value: T) -> None:
    if not answer.done():
        answer.set_result(value)


def _fail_with(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)


def _fail(answer: asyncio.Future[Any], late: Callable[[], BaseException]) -> None:
    if not answer.done():
        answer.set_exception(late())
