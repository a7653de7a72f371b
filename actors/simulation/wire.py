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
    `parked` reached that leader, and may be carried out by the next. `said_until`: when the last of
    the acknowledgements that are late comes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.up = True
        self.down = True
        self.slow = 1.0
        self.mute = False
        self.old = False
        self.ack_delay_s = 0.0
        self.said_until = float("-inf")
        self.parked: list[Callable[[], object]] = []

    def reaches(self, read: bool) -> bool:
        return self.up and (not self.mute or (read and self.old))

    def brings(self, read: bool) -> bool:
        return self.down and (not self.mute or (read and self.old))

    def latency(self) -> float:
        least, most = NEAR_S
        return (least + (most - least) * self.random.random()) * self.slow


def _unheard() -> None:
    """Nobody waits for it."""


class Waiting:
    """A question of a process: `until` is when, in the world's time, its patience is over."""

    __slots__ = ("_deadline", "_late", "_process", "answer", "until")

    def __init__(
        self,
        process: Process,
        answer: asyncio.Future[Any],
        deadline: float,
        late: Callable[[], BaseException],
    ) -> None:
        self.answer = answer
        self.until = process.world_time(deadline)
        self._process = process
        self._deadline = deadline
        self._late = late

    def run_out(self) -> None:
        """It will not be answered in time, or may not: have it fail when it does."""
        self._process.call_at(self._deadline, _fail, self.answer, self._late)


class Landing(Call):
    """What comes to a process over its wire. `read`: an old leader answers it, too; where it is
    lost, `lost` is called."""

    __slots__ = ("lost", "read")

    lost: Callable[[], object] | None
    read: bool


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
        process = self.process
        answer: asyncio.Future[T] = process.create_future()
        # Of a thousand questions one is not answered in time: only that one needs a timer.
        waiting = Waiting(process, answer, process.time() + timeout_s, late)
        self.send(partial(self._serve, serve, waiting, read), read=read, lost=waiting.run_out)
        return await answer

    def send(
        self,
        act: Callable[[], object],
        *,
        read: bool = False,
        lost: Callable[[], object] = _unheard,
    ) -> None:
        """Have `act` done at the broker's end, unless it is lost on the way: then `lost` is."""
        if not self.process.alive:
            return
        if self.process.stopped:  # written by what ran on after the stop: it is in no buffer yet
            self._held.append(act)
            lost()
            return
        at = max(self._up_at, self.world.now + self.line.latency())
        self._up_at = at
        call = Call(at, self._arrive, (act, read, lost), self.world)
        self._going.append(call)
        self.world.due(at, self.world, call)

    # -- the broker's end -----------------------------------------------------------------

    def _arrive(self, act: Callable[[], object], read: bool, lost: Callable[[], object]) -> None:
        self._going.popleft()
        line = self.line
        if self.open and line.reaches(read):
            act()
            return
        lost()
        if self.open and line.up and not read and line.random.random() < PARKED:
            line.parked.append(act)

    def _serve(
        self, serve: Callable[[], Coroutine[Any, Any, T]], waiting: Waiting, read: bool
    ) -> None:
        """What the broker does gives way to others, and waits for nothing: it needs no task."""
        work = serve()
        try:
            while True:
                if work.send(None) is not None:
                    raise RuntimeError(f"{work!r} waits at the broker's end; give it a task")
        except StopIteration as done:
            self._answer(waiting, _resolve, done.value, read)
        except Exception as error:
            self._answer(waiting, _fail_with, error, read)

    def _answer(
        self, waiting: Waiting, how: Callable[..., object], what: object, read: bool
    ) -> None:
        at = self.back(how, waiting.answer, what, lost=waiting.run_out, read=read)
        if at > waiting.until:
            waiting.run_out()

    def back(
        self,
        callback: Callable[..., object],
        *args: Any,
        lost: Callable[[], object] | None = None,
        read: bool = False,
    ) -> float:
        """Have the process called, unless that is lost on the way: then `lost` is. When."""
        at = max(self._down_at, self.world.now + self.line.latency())
        self._down_at = at
        self._land(at, Landing(0.0, callback, args, self.process), lost, read=read)
        return at

    def push(self, callback: Callable[..., object], *args: Any, late_s: float = 0.0) -> None:
        """As `back`, for what nobody asked for: it has an order of its own."""
        at = max(self._watch_at, self.world.now + self.line.latency() + late_s)
        self._watch_at = at
        self._land(at, Landing(0.0, callback, args, self.process))

    def _land(
        self,
        at: float,
        landing: Landing,
        lost: Callable[[], object] | None = None,
        *,
        read: bool = False,
    ) -> None:
        landing.lost, landing.read = lost, read
        self.world.due(at, self, landing)

    def take(self, landing: Call) -> None:
        """It has come to the process's end."""
        assert isinstance(landing, Landing)
        process, lost = self.process, landing.lost
        if self.open and process.alive and self.line.brings(landing.read):
            process.came_in(landing)
            if lost is not None and process.stopped:
                lost()  # which comes first, when it goes on, is the seed's to say
        elif lost is not None:
            lost()

    # -- stops and the end ----------------------------------------------------------------

    def hold_back(self, most: int) -> int:
        """The process stops (or dies) now: up to `most` of the last things it wrote are still
        its own, and go out when it resumes, if ever. Returns how many."""
        held: list[Callable[[], object]] = []
        while self._going and len(held) < most:
            call = self._going.pop()
            held.append(call._args[0])
            call._args[2]()
            call.cancel()
        self._held.extend(reversed(held))
        self._up_at = self._going[-1]._when if self._going else 0.0
        return len(held)

    def let_go(self) -> None:
        """The process goes on."""
        held, self._held = self._held, []
        for act in held:
            self.send(act)

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
