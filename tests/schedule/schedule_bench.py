"""Schedulers of several nodes on one twin, each with a clock that a test may set."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from actors.tenure import Fence, Session, Tenure
from crewlet import topics
from crewlet.broker.memory_client import MemoryClient
from crewlet.company import Company, parse_company
from crewlet.events import Event, decode
from crewlet.events.schedules import ScheduledTask, ScheduledTaskFired
from crewlet.queue import Publisher
from crewlet.schedule.scheduler import TICK_S, Scheduler
from crewlet.testing import MemoryBroker, run_virtual

T = TypeVar("T")

FOR_EVER = float("inf")


class SetClock:
    """A machine's wall clock: the true time, and what it is off by."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.off = timedelta(0)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return self._world.now() + self.off


class Worker:
    """One node's scheduler: `begin` is a fresh process, `kill` leaves what it had in hand."""

    def __init__(self, world: World, name: str, peek_s: float) -> None:
        self.world = world
        self.name = name
        self._peek_s = peek_s
        self.clock = SetClock(world)
        self.client: MemoryClient = world.broker.client(name)
        self.tenure = _tenure()
        self._running: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        await self.client.start()
        self.queue = Publisher(self.client, node_id=self.name, clock=self.clock)
        self.scheduler = Scheduler(
            lambda: self.world.company,
            self.queue,
            self.client.store,
            self.clock,
            self.name,
            peek_s=self._peek_s,
        )
        self.tenure = _tenure()
        self._running = asyncio.ensure_future(self.scheduler.run(self.tenure))

    def kill(self) -> None:
        if self._running is not None:
            self._running.cancel()
            self._running = None

    def lose(self) -> None:
        """The duty is another's; this process has not heard of it yet, only its lease has."""
        self.tenure.ended = True


class World:
    """The twin, the company of the moment, and what came of it."""

    def __init__(self, text: str, start: datetime) -> None:
        self.broker = MemoryBroker()
        self.company: Company = parse_company(text, env={})
        self._start = start.astimezone(UTC)  # the arithmetic of a zone is that of its walls
        self._reader = self.broker.client("reader")

    def now(self) -> datetime:
        return self._start + timedelta(seconds=asyncio.get_running_loop().time())

    async def open(self) -> None:
        await self._reader.start()
        for seat in self.company.agents():
            await self._reader.ensure(topics.inbox_of(seat.handle))

    def apply(self, text: str) -> None:
        self.company = parse_company(text, env={})

    def worker(self, name: str, peek_s: float = TICK_S) -> Worker:
        """By default it sees a new company as late as a tick: days pass in most tests."""
        return Worker(self, name, peek_s)

    async def until(self, moment: datetime) -> None:
        """Let the true time come to it."""
        await asyncio.sleep((moment - self.now()).total_seconds())

    # -- what came of it --------------------------------------------------------------

    async def tasks(self, handle: str = "dev") -> list[Event]:
        """What lies in an inbox."""
        waiting: list[Event] = []
        attachment = await self._reader.attach(topics.inbox_of(handle), 1)
        while found := await self._reader.fetch(attachment, 100, 0.0):
            waiting += [decode(delivery.body) for delivery in found]
        return waiting

    async def labels(self, handle: str = "dev") -> list[str]:
        """The labels of the tasks in an inbox."""
        return [event.read(ScheduledTask).label for event in await self.tasks(handle)]

    async def records(self) -> list[tuple[Event, ScheduledTaskFired]]:
        found = await self._reader.recent(topics.event("scheduled_task_fired"), 100_000)
        events = [decode(body) for _, body in found]
        return [(event, event.read(ScheduledTaskFired)) for event in events]

    async def outcomes(self) -> Counter[str]:
        return Counter(body.outcome for _, body in await self.records())


def _tenure() -> Tenure:
    session = Session()
    session.epoch, session.valid_until, session.start_until = 1, FOR_EVER, FOR_EVER
    return Tenure(Fence("worker:scheduler", 1, 1), session, 1)


def in_a_world(
    text: str, start: datetime, play: Callable[[World], Coroutine[Any, Any, T]], *, seed: int = 0
) -> T:
    async def main() -> T:
        world = World(text, start)
        await world.open()
        return await play(world)

    return run_virtual(main, seed=seed)
