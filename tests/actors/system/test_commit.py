"""What a handler asks for happens when it returns, in order, or not at all."""

from __future__ import annotations

import asyncio

import pytest

from actors.system import Actor, Address, AsyncioSystemBase, OutsideHandler, Supervision, handles

from .stage import Diary, Do, Say, rest, stage

RESUME = Supervision(on_failure="resume")


def test_a_failing_handler_has_done_nothing():
    diary: list[object] = []
    ran = []

    async def work() -> None:
        ran.append("effect")

    def everything_then_raise(actor: Actor) -> None:
        actor.tell(actor.me, Say("sent"))
        child = actor.spawn(Diary, diary)
        actor.watch(child)
        actor.effect(work(), "tag")
        actor.timer("t", 1, Say("timer"))
        actor.stop()
        raise ValueError("after all that")

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary, supervision=RESUME)
        system.tell(actor, Do(everything_then_raise))
        await asyncio.sleep(10)
        (shown,) = system.tree()
        assert (shown.children, shown.effects, shown.timers) == ((), 0, 0)

    system = stage(play)
    assert diary == ["started", "stopped"]
    assert ran == [] and system.dead_letters == {}


def test_acts_keep_their_order():
    diary: list[object] = []

    def two(actor: Diary) -> None:
        actor.diary.append("before")
        child = actor.spawn(Diary, diary)
        actor.tell(child, Say("one"))
        actor.tell(child, Say("two"))
        actor.diary.append("after")

    async def play(system: AsyncioSystemBase) -> None:
        system.tell(system.spawn(Diary, diary), Do(two))
        await rest()

    stage(play)
    assert diary[:6] == ["started", "before", "after", "started", "one", "two"]


def test_a_child_of_a_failed_handler_is_an_address_that_is_gone():
    kept: list[Address] = []

    def spawn_and_raise(actor: Actor) -> None:
        kept.append(actor.spawn(Diary, []))
        raise ValueError

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, [], supervision=RESUME)
        system.tell(actor, Do(spawn_and_raise))
        await rest()
        system.tell(kept[0], Say())

    assert stage(play).dead_letters == {"gone": 1}


def test_acts_outside_the_own_handler_are_refused():
    caught = []

    def from_a_coroutine(actor: Actor) -> None:
        async def work() -> None:
            for act in (lambda: actor.tell(actor.me, Say()), lambda: actor.stop()):
                with pytest.raises(OutsideHandler):
                    act()
            with pytest.raises(OutsideHandler):
                actor.effect(asyncio.sleep(0), "never")
            caught.append(True)

        actor.effect(work(), "tag")

    async def play(system: AsyncioSystemBase) -> None:
        system.tell(system.spawn(Diary, []), Do(from_a_coroutine))
        await rest()

    stage(play)
    assert caught == [True]


def test_the_constructor_and_the_hooks_may_act():
    diary: list[object] = []

    class Eager(Diary):
        def __init__(self, other: Address) -> None:
            super().__init__(diary)
            self.other = other
            self.tell(other, Say("from the constructor"))

        def pre_start(self) -> None:
            self.tell(self.other, Say("from pre_start"))

        def post_stop(self) -> None:
            self.tell(self.other, Say("from post_stop"))
            with pytest.raises(RuntimeError, match="can begin nothing"):
                self.timer("t", 1, Say())

    async def play(system: AsyncioSystemBase) -> None:
        other = system.spawn(Diary, diary)
        await system.stop(system.spawn(Eager, other), 1)
        await rest()

    stage(play)
    said = [text for text in diary if str(text).startswith("from")]
    assert said == ["from the constructor", "from pre_start", "from post_stop"]


def test_the_senders_are_told_apart():
    class Echo(Actor):
        @handles(Say)
        def on_say(self, message: Say, sender: Address) -> None:
            self.tell(sender, (message.text, self.me, self.parent, self.name))

    async def play(system: AsyncioSystemBase) -> None:
        echo = system.spawn(Echo, name="echo")
        assert await system.aask(echo, Say("a"), 1) == ("a", echo, None, "echo")

    stage(play)
