"""A company on the twin whose turns suspend: what the tests of runs share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from crewlet import topics
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.types import TaskAssigned
from crewlet.turn import Suspend, Turn
from tests.node.operated import Operated

CHAT = "chat:C1"


class Worker:
    """A handler: `suspend NAME` goes on as that run, everything else is worked at once."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    async def __call__(self, turn: Turn) -> str | Suspend:
        self.turns.append(turn)
        word, _, name = turn.events[0].body.partition(" ")
        return Suspend(name) if word == "suspend" else f"done: {turn.text}"

    @property
    def texts(self) -> list[list[str]]:
        """What each turn was for."""
        return [[event.body for event in turn.events] for turn in self.turns]

    @property
    def attempts(self) -> list[int]:
        return [turn.attempt for turn in self.turns]


async def say(
    node: Operated, text: str, *, key: str = CHAT, id: str = "", chain: tuple[str, ...] = ()
) -> Event:
    """A message of a conversation, into dev's inbox."""
    event = Event.new(
        types.TASK_ASSIGNED,
        id=id,
        at=node.node.clock.now(),
        trace=Trace.root(),
        payload={"partition_key": key, "conversation_identity": key} if key else {},
        body=TaskAssigned(handle="dev", text=text, sender="ann"),
        delegation_depth=len(chain),
        delegation_chain=chain,
    )
    await node.node.queue.publish(topics.inbox("dev"), event)
    return event


async def until(what: Callable[[], object], within_s: float = 120.0) -> None:
    async with asyncio.timeout(within_s):
        while not what():
            await asyncio.sleep(0.1)


async def waiting(node: Operated) -> tuple[int, int]:
    """dev's mail: not handed out, and in flight."""
    (state,) = await node.node.broker.list(topics.inbox("dev"))
    return state.waiting, state.in_flight


async def holds(node: Operated) -> list[str]:
    return list((await node.one("seat.show", handle="dev"))["holds"])


async def runs(node: Operated) -> list[tuple[str, str, bool]]:
    return [(row["run_id"], row["state"], row["holds"]) for row in await node.ask("run.ls")]


async def values(node: Operated, type: str, key: str) -> list[Any]:
    """Of the recorded events of this type."""
    return [event.value(key, object, None) for event in await node.recorded(type)]
