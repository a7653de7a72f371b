"""Seats that talk to one another on nodes that share a twin, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from crewlet.a2a.channel import Channel
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.turn import Turn
from tests.node.operated import Operated, on_nodes

Part = Callable[[Turn], Awaitable[Any]]


class Scene:
    """`dev` and `ops` play the parts they are given; each turn is noted as it starts. `wakes` are
    what was put into inboxes, as the publishing nodes heard it."""

    def __init__(self, **parts: Part) -> None:
        self.parts = parts
        self.turns: list[Turn] = []
        self.wakes: list[tuple[str, Event]] = []
        self.nodes: list[Operated] = []

    async def work(self, turn: Turn) -> Any:
        self.turns.append(turn)
        part = self.parts.get(turn.seat.handle)
        return await part(turn) if part is not None else "done"

    def play(self, test: Callable[[], Coroutine[Any, Any, None]], *ids: str) -> None:
        async def on(*nodes: Operated) -> None:
            self.nodes = list(nodes)
            for each in nodes:
                each.node.queue.add_listener(self._heard)
            await test()

        on_nodes(on, *ids, turn=self.work)

    def _heard(self, topic: str, event: Event) -> None:
        if event.type in (types.A2A_REQUEST, types.A2A_MESSAGE):
            self.wakes.append((topic, event))

    @property
    def first(self) -> Operated:
        return self.nodes[0]

    def of(self, handle: str, type: str = "") -> list[Turn]:
        """The turns of a seat, of those that an event of this type woke."""
        return [
            turn
            for turn in self.turns
            if turn.seat.handle == handle and type in ("", turn.events[0].type)
        ]

    async def channels(self) -> list[Channel]:
        return [kept.channel for kept in await self.first.node.channels.all()]

    async def channel(self) -> Channel:
        (channel,) = await self.channels()
        return channel

    async def recorded(self, type: str) -> list[Event]:
        return await self.first.recorded(type)

    async def until(self, true: Callable[[], Any], within_s: float = 600.0) -> None:
        async with asyncio.timeout(within_s):
            while True:
                found = true()
                if await found if isinstance(found, Awaitable) else found:
                    return
                await asyncio.sleep(0.5)

    async def until_closed(self, within_s: float = 600.0) -> None:
        """Until there are channels, and the end of each is in the record."""

        async def closed() -> bool:
            channels = await self.channels()
            return bool(channels) and all(channel.announced for channel in channels)

        await self.until(closed, within_s)


def is_task(turn: Turn) -> bool:
    return turn.events[0].type == types.TASK_ASSIGNED


async def asks_ops(turn: Turn) -> Any:
    """dev's part: a task is a question to ops, and an answer is read."""
    return await turn.ask("ops", turn.text) if is_task(turn) else "read"
