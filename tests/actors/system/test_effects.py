"""Coroutines beside the mailbox."""

from __future__ import annotations

import asyncio
import contextvars

from actors.system import Actor, AsyncioSystemBase, EffectEnded, Supervision, handles

from .stage import Diary, Do, Say, fail, rest, stage


async def late(value: object, after_s: float) -> object:
    await asyncio.sleep(after_s)
    return value


async def broken() -> None:
    raise LookupError("lost")


def test_an_end_comes_back_as_a_message():
    diary: list[object] = []

    def begin(actor: Actor) -> None:
        actor.effect(late("value", 3), "a")
        actor.effect(broken(), "b")

    async def play(system: AsyncioSystemBase) -> None:
        system.tell(system.spawn(Diary, diary), Do(begin))
        await asyncio.sleep(5)

    stage(play)
    _, second, first, _ = diary
    assert first == EffectEnded("a", value="value")
    assert isinstance(second, EffectEnded) and isinstance(second.error, LookupError)


def test_a_cancelled_effect_still_ends():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)
        system.tell(actor, Do(lambda me: me.effect(late(1, 100), "a")))
        system.tell(actor, Do(lambda me: me.effect(late(2, 1), "b")))
        system.tell(actor, Do(lambda me: me.cancel("a")))
        await asyncio.sleep(2)

    stage(play)
    cancelled, other = (entry for entry in diary if isinstance(entry, EffectEnded))
    assert cancelled.tag == "a" and isinstance(cancelled.error, asyncio.CancelledError)
    assert other == EffectEnded("b", value=2)


def test_begun_and_cancelled_in_one_handler():
    diary: list[object] = []

    def both(actor: Actor) -> None:
        actor.effect(late(1, 100), "a")
        actor.cancel("a")

    async def play(system: AsyncioSystemBase) -> None:
        system.tell(system.spawn(Diary, diary), Do(both))
        await rest()

    stage(play)
    assert isinstance(diary[1], EffectEnded)


def test_an_earlier_incarnation_s_end_is_discarded():
    """Also one that had ended, and waited in the mailbox, when the incarnation failed."""
    diary: list[object] = []

    def begin_and_flood(actor: Diary) -> None:
        actor.effect(late("old", 0), "quick")
        actor.effect(late("old", 0.05), "slow")

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)
        system.tell(actor, Do(begin_and_flood))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        system.tell(actor, Do(fail))
        await asyncio.sleep(20)
        system.tell(actor, Say("alive"))
        await rest()

    stage(play)
    new_life = diary[diary.index("stopped") :]
    assert new_life == ["stopped", "started", "alive", "stopped"]


def test_the_next_incarnation_waits_for_the_effects_of_the_last():
    diary: list[object] = []

    async def slow_to_leave() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(2)
            diary.append("left")

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)
        system.tell(actor, Do(lambda me: me.effect(slow_to_leave(), "a")))
        await rest()
        system.tell(actor, Do(fail))
        await asyncio.sleep(10)

    stage(play)
    assert diary == ["started", "left", "stopped", "started", "stopped"]


def test_an_effect_that_will_not_end_is_abandoned():
    async def deaf() -> None:
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                if released:
                    raise

    released: list[bool] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, [])
        system.tell(actor, Do(lambda me: me.effect(deaf(), "a")))
        await rest()
        began = system.clock.monotonic()
        assert not await system.stop(actor, timeout_s=1)
        assert await system.stop(actor, timeout_s=60)
        assert 4 < system.clock.monotonic() - began < 6
        released.append(True)

    stage(play)


def test_an_effect_does_not_see_the_context_of_whoever_called():
    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace", default="none")
    seen = []

    async def look() -> None:
        seen.append(trace.get())

    async def play(system: AsyncioSystemBase) -> None:
        trace.set("the test's")
        system.tell(system.spawn(Diary, []), Do(lambda me: me.effect(look(), "a")))
        await rest()

    stage(play)
    assert seen == ["none"]


def test_a_failure_that_is_resumed_keeps_its_effects():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary, supervision=Supervision(on_failure="resume"))
        system.tell(actor, Do(lambda me: me.effect(late("kept", 1), "a")))
        system.tell(actor, Do(fail))
        await asyncio.sleep(2)

    stage(play)
    assert EffectEnded("a", value="kept") in diary


def test_an_end_is_handled_in_the_turn_of_the_loop_that_brings_it():
    diary: list[object] = []

    async def ends() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, diary.append, "the next turn")

    async def play(system: AsyncioSystemBase) -> None:
        system.tell(system.spawn(Diary, diary), Do(lambda me: me.effect(ends(), "a")))
        await rest()

    stage(play)
    assert diary[1:3] == [EffectEnded("a"), "the next turn"]


def test_what_an_end_sets_off_gives_the_loop_its_turns():
    """An actor that keeps itself busy from the end of an effect on does not keep the loop."""
    over = False

    class Restless(Actor):
        @handles(Say)
        def on_say(self, message: Say, sender: object) -> None:
            if message.text == "begin":
                self.effect(late("value", 0), "a")
            elif not over:
                self.tell(self.me, message)

        @handles(EffectEnded)
        def on_ended(self, ended: EffectEnded, sender: object) -> None:
            self.tell(self.me, Say("again"))
            asyncio.get_running_loop().call_soon(self.finish)

        def finish(self) -> None:
            nonlocal over
            over = True

    async def play() -> None:
        system = AsyncioSystemBase()
        system.tell(system.spawn(Restless), Say("begin"))
        while not over:
            await asyncio.sleep(0)
        await system.shutdown_async()

    asyncio.run(asyncio.wait_for(play(), 30))
