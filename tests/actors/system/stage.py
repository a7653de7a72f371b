"""Messages and actors that the tests of the system share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from actors.system import (
    Actor,
    Address,
    AsyncioSystemBase,
    ChildFailed,
    EffectEnded,
    Terminated,
    handles,
    run_virtual,
)


class Say(Struct, frozen=True):
    text: str = ""


class Do(Struct, frozen=True):
    """Run `act(actor)` inside the handler; the answer is what it returns."""

    act: Callable[[Any], object]


class Urgent(Struct, frozen=True):
    text: str = ""


class Diary(Actor):
    """Writes down what it meets, into a list that outlives it."""

    def __init__(self, diary: list[object]) -> None:
        super().__init__()
        self.diary = diary

    def pre_start(self) -> None:
        self.diary.append("started")

    def post_stop(self) -> None:
        self.diary.append("stopped")

    @handles(Say)
    def on_say(self, message: Say, sender: Address) -> None:
        self.diary.append(message.text)

    @handles(Urgent, urgent=True)
    def on_urgent(self, message: Urgent, sender: Address) -> None:
        self.diary.append(message.text)

    @handles(Do)
    def on_do(self, message: Do, sender: Address) -> None:
        self.tell(sender, message.act(self))

    @handles(EffectEnded, Terminated, ChildFailed)
    def on_notice(self, message: object, sender: Address) -> None:
        self.diary.append(message)


def fail(actor: Actor) -> None:
    raise ValueError("on purpose")


def stage(
    play: Callable[[AsyncioSystemBase], Coroutine[Any, Any, None]], **options: Any
) -> AsyncioSystemBase:
    """Run a play in virtual time, with a system that is shut down afterwards."""
    systems = []

    async def main() -> None:
        system = AsyncioSystemBase(**options)
        systems.append(system)
        await play(system)
        assert await system.shutdown_async()
        assert system.tree() == ()

    run_virtual(main)
    return systems[0]


async def rest() -> None:
    """Let everything that is ready run."""
    await asyncio.sleep(0.001)
