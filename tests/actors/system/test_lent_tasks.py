"""The tasks of effects: each tells its end itself, and one that never waited takes the next."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from actors.system import Actor, Address, AsyncioSystemBase, EffectEnded, handles
from actors.system.effect import EFFECTS_A_TASK

from .stage import Diary, Do, rest, stage

Work = Callable[[], Coroutine[Any, Any, object]]


class Chain(Actor):
    """Begins one effect after the other, each when the one before has ended."""

    def __init__(self, works: list[Work], ends: list[EffectEnded]) -> None:
        super().__init__()
        self.works = works
        self.ends = ends

    def pre_start(self) -> None:
        self.effect(self.works.pop(0)(), "first")

    @handles(EffectEnded)
    def on_ended(self, ended: EffectEnded, sender: Address) -> None:
        self.ends.append(ended)
        if self.works:
            self.effect(self.works.pop(0)(), "next")


class Turns:
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.of_the_loop = 0
        self.over = False

    def count(self) -> None:
        self.of_the_loop += 1
        if not self.over:
            asyncio.get_running_loop().call_soon(self.count)


def played(works: list[Work]) -> list[EffectEnded]:
    ends: list[EffectEnded] = []

    async def play(system: AsyncioSystemBase) -> None:
        system.spawn(Chain, list(works), ends)
        await asyncio.sleep(5)

    stage(play)
    assert len(ends) == len(works)
    return ends


async def my_task() -> object:
    return asyncio.current_task()


async def my_task_after_a_wait() -> object:
    await asyncio.sleep(0)
    return asyncio.current_task()


def test_effects_that_do_not_wait_follow_one_another_in_one_task_and_turn():
    turns = Turns()

    async def work() -> object:
        return asyncio.current_task(), turns.of_the_loop

    async def first() -> object:
        turns.count()
        return await work()

    async def last() -> object:
        turns.over = True
        return await work()

    ends = played([first, *[work] * 20, last])
    assert len({end.value for end in ends}) == 1


def test_a_task_in_which_an_effect_waited_takes_no_other():
    before, waited, after = played([my_task, my_task_after_a_wait, my_task])
    assert before.value is waited.value
    assert after.value is not waited.value


def test_no_effect_sees_the_variables_of_the_one_before():
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")

    async def sets() -> object:
        name.set("the first")
        return asyncio.current_task()

    async def looks() -> object:
        return asyncio.current_task(), name.get()

    async def waits() -> object:
        await asyncio.sleep(0)
        return name.get()

    first, second, third = played([sets, looks, waits])
    assert second.value == (first.value, "nobody")
    assert third.value == "nobody"


def test_variables_of_an_effect_last_through_its_waits():
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")

    async def keeps() -> object:
        name.set("mine")
        await asyncio.sleep(1)
        return name.get()

    assert [end.value for end in played([my_task, keeps])][1] == "mine"


def test_the_loop_has_its_turn_after_so_many():
    turns = Turns()

    async def counted() -> object:
        return turns.of_the_loop

    async def first() -> object:
        turns.count()
        return await counted()

    async def last() -> object:
        turns.over = True
        return await counted()

    ends = played([first, *[counted] * (2 * EFFECTS_A_TASK), last])
    assert ends[EFFECTS_A_TASK].value == ends[0].value
    assert ends[-1].value != ends[0].value


def test_one_that_is_cancelled_before_it_begins_never_does_and_harms_no_other():
    ran: list[str] = []
    ends: list[object] = []

    async def at_once(name: str) -> str:
        ran.append(name)
        return name

    class Fickle(Actor):
        def pre_start(self) -> None:
            self.effect(at_once("a"), "a")

        @handles(EffectEnded)
        def on_ended(self, ended: EffectEnded, sender: Address) -> None:
            ends.append((ended.tag, type(ended.error)))
            if ended.tag == "a":
                self.effect(at_once("b"), "b")
                self.cancel("b")
            elif ended.tag == "b":
                self.effect(late("c"), "c")

    async def late(name: str) -> str:
        await asyncio.sleep(1)
        return await at_once(name)

    async def play(system: AsyncioSystemBase) -> None:
        system.spawn(Fickle)
        await asyncio.sleep(2)

    stage(play)
    assert ran == ["a", "c"]
    assert ends == [("a", type(None)), ("b", asyncio.CancelledError), ("c", type(None))]


def test_a_cancelled_effect_that_never_began_in_its_own_task_ends_too():
    diary: list[object] = []
    ran: list[str] = []

    async def work() -> None:
        ran.append("work")

    def begin_and_cancel(actor: Actor) -> None:
        actor.effect(work(), "a")
        actor.cancel("a")

    async def play(system: AsyncioSystemBase) -> None:
        system.tell(system.spawn(Diary, diary), Do(begin_and_cancel))
        await rest()

    stage(play)
    (ended,) = (entry for entry in diary if isinstance(entry, EffectEnded))
    assert isinstance(ended.error, asyncio.CancelledError) and not ran


def test_whoever_looks_into_the_task_sees_the_effect():
    async def looked() -> object:
        task = asyncio.current_task()
        assert task is not None
        running = inspect.getcoroutinestate(task.get_coro())  # type: ignore[arg-type]
        await asyncio.sleep(0)
        return running, repr(task)

    _, ended = played([my_task, looked])
    state, words = ended.value  # type: ignore[misc]
    assert state == inspect.CORO_RUNNING
    assert "looked" in words


def test_a_failure_is_gone_when_nobody_holds_it():
    """No circle of frames that only the garbage collector would find."""
    left: list[weakref.ref[BaseException]] = []

    class Kept(Exception):
        pass

    async def fails() -> None:
        raise Kept

    class Forgets(Actor):
        def pre_start(self) -> None:
            self.effect(fails(), "a")

        @handles(EffectEnded)
        def on_ended(self, ended: EffectEnded, sender: Address) -> None:
            assert ended.error is not None
            left.append(weakref.ref(ended.error))

    async def play(system: AsyncioSystemBase) -> None:
        gc.disable()
        try:
            system.spawn(Forgets)
            await rest()
            await rest()
            assert left[0]() is None
        finally:
            gc.enable()

    stage(play)


def test_an_interrupt_in_an_effect_ends_the_loop():
    async def interrupted() -> None:
        raise KeyboardInterrupt

    async def play(system: AsyncioSystemBase) -> None:
        system.tell(system.spawn(Diary, []), Do(lambda me: me.effect(interrupted(), "a")))
        await asyncio.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        stage(play)
