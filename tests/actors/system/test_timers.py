"""Named timers, in virtual time."""

from __future__ import annotations

import asyncio
import time

import pytest

from actors.system import (
    Actor,
    Address,
    AsyncioSystemBase,
    Deadlock,
    Supervision,
    handles,
)

from .stage import Diary, Do, Say, fail, stage


def test_a_day_takes_no_wall_time():
    times: list[float] = []

    class Daily(Actor):
        def pre_start(self) -> None:
            self.timer("day", 86_400, Say())

        @handles(Say)
        def on_day(self, message: Say, sender: Address) -> None:
            times.append(self.clock.monotonic())
            assert sender is self.me
            self.timer("day", 86_400, Say())

    async def play(system: AsyncioSystemBase) -> None:
        system.spawn(Daily)
        await asyncio.sleep(86_400 * 30 + 1)

    began = time.monotonic()
    stage(play)
    assert times == [86_400.0 * n for n in range(1, 31)]
    assert time.monotonic() - began < 5


def test_the_same_name_replaces():
    diary: list[object] = []

    def set_twice(actor: Actor) -> None:
        actor.timer("t", 1, Say("first"))
        actor.timer("t", 2, Say("second"))
        actor.timer("u", 3, Say("other"))

    async def play(system: AsyncioSystemBase) -> None:
        system.tell(system.spawn(Diary, diary), Do(set_twice))
        await asyncio.sleep(10)

    stage(play)
    assert diary == ["started", "second", "other", "stopped"]


def test_what_a_timer_says_is_handled_in_the_turn_of_the_loop_that_it_fires_in():
    """Not behind all that has become ready meanwhile."""
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        loop = asyncio.get_running_loop()
        system.tell(system.spawn(Diary, diary), Do(lambda actor: actor.timer("t", 1, Say("told"))))
        await asyncio.sleep(0.5)
        loop.call_later(0.5, diary.append, "the loop's next")
        await asyncio.sleep(1)

    stage(play, shuffle=False)
    assert diary == ["started", "told", "the loop's next", "stopped"]


def test_a_due_timer_that_waits_in_the_mailbox_can_be_withdrawn_or_replaced():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)

        def set_two(me: Actor) -> None:
            me.timer("cancelled", 0, Say("cancelled"))
            me.timer("replaced", 0, Say("replaced"))

        def too_late(me: Actor) -> None:
            me.cancel_timer("cancelled")
            me.timer("replaced", 5, Say("replacement"))

        def busy(me: Actor) -> None:
            """The timers fall due behind these two messages."""
            me.tell(me.me, Do(too_late))

        system.tell(actor, Do(set_two))
        await asyncio.sleep(0)
        system.tell(actor, Do(busy))
        await asyncio.sleep(20)

    stage(play)
    assert "cancelled" not in diary and "replaced" not in diary
    assert diary.count("replacement") == 1


def test_a_repeating_timer_behind_a_flood_never_piles_up():
    """However often it is set while it waits: one message in the mailbox."""
    diary: list[object] = []

    class Slow(Diary):
        def pre_start(self) -> None:
            self.timer("tick", 0.0, Do(lambda me: me.diary.append("tick")))

        @handles(Say)
        def on_say(self, message: Say, sender: Address) -> None:
            self.timer("tick", 0.0, Do(lambda me: me.diary.append("tick")))

    async def play(system: AsyncioSystemBase) -> None:
        slow = system.spawn(Slow, diary)
        for _ in range(50):
            for _ in range(40):
                system.tell(slow, Say())
            await asyncio.sleep(0)
        depth = system.tree()[0].depth
        assert depth <= 50 * 40
        await asyncio.sleep(1)

    stage(play)
    assert 1 <= diary.count("tick") <= 51


def test_a_loop_that_only_feeds_itself_is_found_out():
    class Zeno(Actor):
        def pre_start(self) -> None:
            self.timer("again", 0.0, Say())

        @handles(Say)
        def on_say(self, message: Say, sender: Address) -> None:
            self.timer("again", 0.0, Say())

    async def play(system: AsyncioSystemBase) -> None:
        system.spawn(Zeno)
        await asyncio.sleep(1)

    with pytest.raises(Deadlock, match="time stands still"):
        stage(play)


def test_timers_die_with_the_incarnation_and_with_the_actor():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)
        system.tell(actor, Do(lambda me: me.timer("t", 5, Say("late"))))
        await asyncio.sleep(1)
        system.tell(actor, Do(fail))
        await asyncio.sleep(10)
        system.tell(actor, Do(lambda me: me.timer("t", 5, Say("later"))))
        await asyncio.sleep(1)
        await system.stop(actor, 1)
        await asyncio.sleep(10)

    system = stage(play)
    assert "late" not in diary and "later" not in diary
    assert system.dead_letters.get("gone", 0) == 0


def test_a_resumed_actor_keeps_its_timers():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary, supervision=Supervision(on_failure="resume"))
        system.tell(actor, Do(lambda me: me.timer("t", 5, Say("kept"))))
        system.tell(actor, Do(fail))
        await asyncio.sleep(10)

    stage(play)
    assert "kept" in diary


def test_six_thousand_timers_at_once():
    counted = []

    class Many(Actor):
        def pre_start(self) -> None:
            for n in range(6_000):
                self.timer(str(n), 60 + n % 60, Say())

        @handles(Say)
        def on_due(self, message: Say, sender: Address) -> None:
            counted.append(1)

    async def play(system: AsyncioSystemBase) -> None:
        system.spawn(Many)
        await asyncio.sleep(1)
        assert system.tree()[0].timers == 6_000
        await asyncio.sleep(200)
        assert system.tree()[0].timers == 0

    stage(play, mailbox_bound=10)
    assert len(counted) == 6_000
