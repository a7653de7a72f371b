"""A node dies before and after each thing that it writes or says of a run; another goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from actors.system import LoopClock, run_virtual
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_client import MemoryClient
from crewlet.company import NodeIdentity, NodeSettings, parse_company
from crewlet.coordination.store import LEDGER, RUNS
from crewlet.events import Event, Trace, decode
from crewlet.events import catalogue as types
from crewlet.events.types import TaskAssigned
from crewlet.inbound.ledger import Ledger
from crewlet.node import Node
from crewlet.queue import Publisher
from crewlet.runs.row import Run, State
from crewlet.runs.runs import Runs
from tests.node.operated import COMPANY
from tests.node.suspended import CHAT, Worker

WATCHED = {RUNS.name, LEDGER.name}
SOON_S = 120.0
"""A take-over takes less: a lease lasts for 20 s."""


class Dying:
    """A node's client that dies at its n-th act on runs, ledger and dev's mail: before it is
    done, or once it is and nobody was told."""

    def __init__(self, client: MemoryClient, nth: int, *, after: bool) -> None:
        self.acts: list[str] = []
        self.dead = False
        self._client = client
        self._nth = nth
        self._after = after
        for verb in ("create", "update", "delete", "record"):
            self._watch(client.store, verb, lambda bucket: bucket.name in WATCHED)
        self._watch(client, "publish", lambda topic: topics.handle_of(topic) == "dev")
        self._watch(client, "settle", lambda verdicts: True)

    def _watch(self, of: Any, verb: str, watched: Callable[[Any], bool]) -> None:
        call = getattr(of, verb)

        async def act(first: Any, *rest: Any, **named: Any) -> Any:
            if self.dead or not watched(first):
                return await call(first, *rest, **named)
            self.acts.append(verb)
            if len(self.acts) < self._nth:
                return await call(first, *rest, **named)
            self.dead = True
            if self._after:
                await call(first, *rest, **named)
            self._client.crash()
            return await asyncio.Event().wait()

        setattr(of, verb, act)


class Unbraked:
    async def hold(self, handle: str, name: str) -> bool:
        return False

    async def lift(self, handle: str, name: str) -> bool:
        return False


class Outside:
    """Whoever writes to dev and runs its work: no node of the fleet."""

    def __init__(self, client: MemoryClient, worker: Worker) -> None:
        clock = LoopClock(asyncio.get_running_loop())
        self.client = client
        self.clock = clock
        self.worker = worker
        self.queue = Publisher(client, node_id="outside", clock=clock)
        self.ledger = Ledger(client.store)
        self.runs = Runs(client.store, self.queue, self.ledger, Unbraked(), clock, "outside")
        self.sent: list[str] = []

    async def say(self, text: str) -> None:
        event = Event.new(
            types.TASK_ASSIGNED,
            at=self.clock.now(),
            trace=Trace.root(),
            payload={"partition_key": CHAT, "conversation_identity": CHAT},
            body=TaskAssigned(handle="dev", text=text, sender="ann"),
        )
        self.sent.append(event.id)
        await self.queue.publish(topics.inbox("dev"), event)

    async def stands(self, is_so: Callable[[Run], bool]) -> None:
        async with asyncio.timeout(SOON_S):
            while not any(map(is_so, await self.runs.all("dev"))):
                await asyncio.sleep(0.5)

    @property
    def begun(self) -> Counter[str]:
        """What turns were for, however they ended."""
        return Counter(text for texts in self.worker.texts for text in texts)

    async def texts(self, outcome: str) -> Counter[str]:
        """Of the triggers of turns that ended so, by what they say."""
        said = {one.id: one.body for turn in self.worker.turns for one in turn.events}
        found = await self.client.recent(topics.event(types.AGENT_TURN_COMPLETED), 999)
        ended = [decode(body) for _, body in found]
        return Counter(
            said[id]
            for event in ended
            if event.value("outcome", str, "") == outcome
            for id in event.value("triggers", list, [])
        )


Script = Callable[[Outside], Coroutine[Any, Any, None]]


def node_of(client: MemoryClient, worker: Worker) -> Node:
    return Node(
        parse_company(COMPANY),
        turn=worker,
        settings=NodeSettings(node=NodeIdentity(id=client.node_id)),
        broker=client,
        clock=LoopClock(asyncio.get_running_loop()),
        web=False,
        admin=False,
    )


async def successor(
    broker: MemoryBroker, dying: Dying, worker: Worker, over: asyncio.Event
) -> bool:
    """Takes over when the first one has died; whether it had to."""
    while not dying.dead:
        if over.is_set():
            return False
        await asyncio.sleep(1)
    async with node_of(broker.client("n2"), worker):
        await over.wait()
    return True


def played(script: Script, check: Script, nth: int, *, after: bool) -> bool:
    """Whether the first node died at its n-th act; everything else is asserted."""

    async def main() -> bool:
        broker, worker, over = MemoryBroker(), Worker(), asyncio.Event()
        client, outside = broker.client("n1"), broker.client("outside")
        await outside.start()
        first = node_of(client, worker)
        await first.start()
        dying = Dying(client, nth, after=after)
        follower = asyncio.create_task(successor(broker, dying, worker, over))
        person = Outside(outside, worker)
        try:
            await script(person)
            await asyncio.sleep(300)
            await check(person)
        except BaseException as error:
            error.add_note(f"died at act {nth} of {dying.acts}, after={after}")
            raise
        finally:
            over.set()
            died = await follower
            first.failed = first.failed or died
            await first.stop()
        return died

    return run_virtual(main)


def at_every_act(script: Script, check: Script) -> int:
    """The number of acts at which it died."""
    for after in (False, True):
        nth = 1
        while played(script, check, nth, after=after):
            nth += 1
    return nth - 1


async def everything_is_worked(outside: Outside) -> None:
    states = {state.mailbox: state for state in await outside.client.list(topics.AGENT)}
    for mailbox in (topics.inbox_of("dev"), topics.control_of("dev")):
        assert (states[mailbox].waiting, states[mailbox].in_flight) == (0, 0), mailbox
    assert await outside.client.dead_letters(10) == []
    assert set(await outside.ledger.worked("dev", outside.sent)) == set(outside.sent)
    (run,) = await outside.runs.all("dev")
    assert run.told and not run.holds and run.state is State.COMPLETED


async def worked_once(outside: Outside, *texts: str) -> None:
    """A turn for each of these and for what suspended, and for nothing else. One that died with
    its node was run again, and one that died after its end left no event of it."""
    assert set(outside.begun) == {"suspend r1", *texts}
    assert max(outside.begun.values()) <= 2
    assert await outside.texts("suspend") <= Counter(["suspend r1"])
    assert await outside.texts("ack") <= Counter(texts)


@pytest.mark.certifies(137, 144, 166)
def test_a_run_that_asks_and_is_answered_outlives_its_node() -> None:
    async def script(outside: Outside) -> None:
        await outside.say("suspend r1")
        await outside.stands(lambda run: run.state is State.RUNNING)
        await outside.runs.asks("dev", "r1", "Which branch?")
        await outside.stands(lambda run: run.state is State.ASKING)
        await outside.say("main, please")
        await outside.stands(lambda run: run.state is State.RESUMING)
        await outside.runs.take("dev", "r1")
        await outside.say("more work")
        await outside.runs.completed("dev", "r1", "all green")
        await outside.stands(lambda run: run.told)

    async def check(outside: Outside) -> None:
        await everything_is_worked(outside)
        await worked_once(outside, "more work", "all green")

    assert at_every_act(script, check) > 10


@pytest.mark.certifies(143, 144)
def test_an_answer_that_nobody_takes_comes_back_once_though_its_node_dies() -> None:
    async def script(outside: Outside) -> None:
        await outside.say("suspend r1")
        await outside.stands(lambda run: run.state is State.RUNNING)
        await outside.runs.asks("dev", "r1", "Which branch?")
        await outside.stands(lambda run: run.state is State.ASKING)
        await outside.say("main, please")
        await outside.stands(lambda run: run.state is State.RESUMING)
        await outside.runs.completed("dev", "r1", "all green")
        await outside.stands(lambda run: run.told)

    async def check(outside: Outside) -> None:
        await everything_is_worked(outside)
        await worked_once(outside, "main, please", "all green")

    assert at_every_act(script, check) > 10


@pytest.mark.certifies(137)
def test_a_run_whose_turn_was_not_recorded_is_not_begun_again() -> None:
    """The row is the proof: whoever takes the seat finds it, and the trigger is worked."""
    begun: Counter[str] = Counter()

    async def script(outside: Outside) -> None:
        await outside.say("suspend r1")
        await outside.stands(lambda run: run.state is State.RUNNING)
        await asyncio.sleep(SOON_S)
        await outside.runs.completed("dev", "r1", "all green")
        await outside.stands(lambda run: run.told)

    async def check(outside: Outside) -> None:
        await everything_is_worked(outside)
        begun.clear()
        begun.update(outside.begun)

    assert played(script, check, 1, after=False), "before the row"
    assert begun == {"suspend r1": 2, "all green": 1}
    assert played(script, check, 1, after=True), "the row is there, and nothing else"
    assert begun == {"suspend r1": 1, "all green": 1}
    assert played(script, check, 2, after=False), "the completion is not recorded"
    assert begun == {"suspend r1": 1, "all green": 1}
    assert played(script, check, 2, after=True), "it is, and its mail is not settled"
    assert begun == {"suspend r1": 1, "all green": 1}
