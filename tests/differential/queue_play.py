"""Plays a script of the queue over one world, and writes down what each handler saw."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from actors.delivery import Ack, BatchOptions, Defer, Mailbox, Nak, Outcome
from actors.machines.budget import Backoff
from actors.ports import BrokerError
from actors.system import LoopClock
from crewlet import topics
from crewlet.events import Event, Trace
from crewlet.queue import Batch, EventQueue
from tests.differential import queue_steps as steps
from tests.differential.pace import Pace
from tests.differential.worlds import World

BEGIN: Final = datetime(2026, 3, 1, tzinfo=UTC)
OPTIONS: Final = BatchOptions(max_batch=3)
BACKOFF: Final = Backoff(first_s=steps.BACK_S, longest_s=steps.BACK_S)
MOST_S: Final = 10.0
ROUNDS: Final = 100
HEARD_S: Final = 1.0

Answer: TypeAlias = object
Line: TypeAlias = tuple[steps.Step, Answer, Answer]
"""A step, what the verb answered, and what handlers were begun with until the next."""


class Boom(Exception):
    """What a handler raises."""


class Player:
    """One run. `prefix` keeps its names apart from those of all other runs of the server."""

    def __init__(self, world: World, pace: Pace, prefix: str) -> None:
        self.lines: list[Line] = []
        self._world = world
        self._pace = pace
        self._prefix = prefix
        self._seats = [topics.inbox_of(f"{prefix}-{seat}") for seat in range(steps.SEATS)]
        self._queues: list[EventQueue] = []
        self._attached: dict[int, int] = {}
        self._calls: list[list[Answer]] = [[] for _ in self._seats]
        self._running: list[list[asyncio.Future[Outcome | None]]] = [[] for _ in self._seats]
        self._step: steps.Step = steps.Idle()
        self._said: Answer = "began"
        self._heard = [asyncio.Event() for _ in range(steps.QUEUES)]
        self._pings = 0
        self._activity = 0

    async def play(self, script: steps.Script) -> None:
        loop = asyncio.get_running_loop()
        for who in range(steps.QUEUES):
            client = self._world.client(f"{self._prefix}-{who}")
            queue = EventQueue(client, node_id=f"q{who}", clock=LoopClock(loop), backoff=BACKOFF)
            self._queues.append(queue)
            await self._begin(who)
        for seat in self._seats:
            await self._queues[0].ensure(seat.topic, seat.group)
        try:
            for step in script:
                await self._take(step)
            await self._end()
        finally:
            await self._clear()

    async def _begin(self, who: int) -> None:
        """Start a queue; its canary says how fast mail travels now."""
        await self._queues[who].start()
        canary = self._canary(who)

        async def sing(_: Batch) -> None:
            self._heard[who].set()

        await self._queues[who].subscribe(canary.topic, canary.group, sing)

    def _canary(self, who: int) -> Mailbox:
        return topics.inbox_of(f"{self._prefix}-canary-{who}")

    async def _take(self, step: steps.Step) -> None:
        if isinstance(step, steps.Idle):
            return
        await self._pace.turn(_TAKES_S.get(type(step), STEP_S), _delays(step))
        self._write_down()
        self._step, self._said = step, await self._answer(step)
        await self._quiet()

    def _write_down(self) -> None:
        """The step before, with all that began until now: what came back by itself, too."""
        self.lines.append((self._step, self._said, self._calls))
        self._calls = [[] for _ in self._seats]

    async def _answer(self, step: steps.Step) -> Answer:
        try:
            async with asyncio.timeout(MOST_S):
                return await _PLAYS[type(step)](self, step)
        except (BrokerError, ValueError) as error:
            return type(error).__name__

    async def _quiet(self) -> None:
        """Nothing goes on because of the last step: mail that was sent after it has come, and
        no handler began or ended meanwhile."""
        before = -1
        while before != self._activity:
            before = self._activity
            await self._world.travel(self._ping)
            await asyncio.sleep(self._world.quiet_s / 3)

    async def _ping(self) -> None:
        await asyncio.gather(*(self._ping_one(who) for who in range(steps.QUEUES)))

    async def _ping_one(self, who: int) -> None:
        self._pings += 1
        topic = self._canary(who).topic
        event = self._event(topic, f"ping-{self._pings}", "", 0)
        self._heard[who].clear()
        await self._queues[who].publish(topic, event)
        async with asyncio.timeout(MOST_S):
            await self._heard[who].wait()

    # -- the steps ------------------------------------------------------------------------

    async def _play_send(self, step: steps.Send) -> Answer:
        topic = self._seats[step.seat].topic
        event = self._event(topic, str(step.number), step.key, step.at)
        return (await self._queues[step.who].publish(topic, event)).receipt.duplicate

    def _event(self, topic: str, name: str, key: str, at: int) -> Event:
        return Event.new(
            "differential_event",
            id=f"{topic}/{name}",
            at=BEGIN + timedelta(seconds=at),
            trace=Trace.root(),
            payload={"name": name, "key": key},
        )

    async def _play_say(self, step: steps.Say) -> Answer:
        if not self._running[step.seat]:
            return "no handler runs"
        run = self._running[step.seat].pop(0)
        if step.said == "raise":
            run.set_exception(Boom("boom"))
        else:
            run.set_result(_OUTCOMES[step.said])
        if _delays(step):
            self._pace.due_in(steps.BACK_S)
        return step.said

    async def _play_hold(self, step: steps.Hold) -> Answer:
        return await self._queues[step.who].hold(*self._pair(step.seat), step.reason)

    async def _play_lift(self, step: steps.Lift) -> Answer:
        return await self._queues[step.who].lift(*self._pair(step.seat), step.reason)

    async def _play_quiesce(self, step: steps.Quiesce) -> Answer:
        return await self._queues[step.who].quiesce(*self._pair(step.seat))

    async def _play_unquiesce(self, step: steps.Unquiesce) -> Answer:
        return await self._queues[step.who].unquiesce(*self._pair(step.seat))

    async def _play_detach(self, step: steps.Detach) -> Answer:
        detached = await self._queues[step.who].detach(*self._pair(step.seat))
        if self._attached.get(step.seat) == step.who:
            del self._attached[step.seat]
        return detached

    async def _play_subscribe(self, step: steps.Subscribe) -> Answer:
        if self._attached.get(step.seat, step.who) != step.who:
            return "another's"
        handler = self._handler(step.seat, step.who)
        await self._queues[step.who].subscribe_batch(
            *self._pair(step.seat), handler, key=_key, options=lambda: OPTIONS
        )
        self._attached[step.seat] = step.who
        return "subscribed"

    async def _play_restart(self, step: steps.Restart) -> Answer:
        await self._queues[step.who].stop()
        self._attached = {seat: who for seat, who in self._attached.items() if who != step.who}
        await self._begin(step.who)
        return "restarted"

    async def _play_restart_broker(self, step: steps.RestartBroker) -> Answer:
        await self._world.restart()
        return "restarted"

    async def _play_pass_time(self, step: steps.PassTime) -> Answer:
        await self._pace.passes(step.times * steps.PASS_S)
        return "passed"

    async def _play_let_go(self, step: steps.LetGo) -> Answer:
        answers = []
        for seat in range(steps.SEATS):
            for queue in self._queues:
                answers += [await queue.lift(*self._pair(seat), name) for name in steps.REASONS]
                answers.append(await queue.unquiesce(*self._pair(seat)))
            if seat not in self._attached:
                await self._play_subscribe(steps.Subscribe(seat, 0))
        return answers

    def _pair(self, seat: int) -> tuple[str, str]:
        return self._seats[seat].topic, self._seats[seat].group

    # -- the handlers ---------------------------------------------------------------------

    def _handler(self, seat: int, who: int) -> Callable[[Batch], Awaitable[Outcome | None]]:
        async def handle(batch: Batch) -> Outcome | None:
            events = [(_name(one), batch.headrooms[one.id]) for one in batch.events]
            self._calls[seat].append((who, batch.key, events, batch.headroom))
            self._activity += 1
            run: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
            self._running[seat].append(run)
            try:
                return await run
            finally:
                self._activity += 1
                if run in self._running[seat]:
                    self._running[seat].remove(run)

        return handle

    # -- the end --------------------------------------------------------------------------

    async def _end(self) -> None:
        """Every brake is let go, and every handler succeeds, until nothing is left."""
        await self._take(steps.PassTime(1))
        await self._take(steps.LetGo())
        for _ in range(ROUNDS):
            if not any(self._running):
                break
            for seat in range(steps.SEATS):
                await self._take(steps.Say(seat, "ack"))
        self._write_down()
        self.lines.append((steps.Idle(), await self._left(), None))

    async def _left(self) -> Answer:
        """What stays in the mailboxes: nothing, as soon as the last word was heard."""
        deadline = asyncio.get_running_loop().time() + HEARD_S
        while True:
            states = [
                (state.waiting, state.in_flight)
                for state in await self._queues[0].list(">")
                if state.mailbox in self._seats
            ]
            empty = not any(any(state) for state in states)
            if empty or asyncio.get_running_loop().time() > deadline:
                return states
            await asyncio.sleep(0.01)

    async def _clear(self) -> None:
        for queue in self._queues:
            await queue.stop()
        client = self._world.client(f"{self._prefix}-broom")
        await client.start()
        for mailbox in (*self._seats, *(self._canary(who) for who in range(steps.QUEUES))):
            await client.delete(mailbox)
        await client.stop()


def _name(event: Event) -> str:
    return event.extra("name", str, "")


def _key(event: Event) -> str:
    return event.extra("key", str, "")


def _delays(step: steps.Step) -> list[float]:
    waits = isinstance(step, steps.Say) and step.said in ("nak", "raise", "defer")
    return [steps.BACK_S] if waits else []


_OUTCOMES: Final[dict[steps.Said, Outcome | None]] = {
    "nothing": None,
    "ack": Ack(),
    "nak": Nak("no"),
    "defer": Defer("busy", steps.BACK_S),
}

STEP_S: Final = 0.05
"""How long a step and what follows of it take, at the most."""

_TAKES_S: Final = {steps.Restart: 0.3, steps.RestartBroker: 2.0}

_PLAYS: Final[dict[type[Any], Callable[[Player, Any], Awaitable[Answer]]]] = {
    steps.Send: Player._play_send,
    steps.Say: Player._play_say,
    steps.Hold: Player._play_hold,
    steps.Lift: Player._play_lift,
    steps.Quiesce: Player._play_quiesce,
    steps.Unquiesce: Player._play_unquiesce,
    steps.Detach: Player._play_detach,
    steps.Subscribe: Player._play_subscribe,
    steps.Restart: Player._play_restart,
    steps.RestartBroker: Player._play_restart_broker,
    steps.LetGo: Player._play_let_go,
    steps.PassTime: Player._play_pass_time,
}
