"""The end: children first, at once, and told to whoever watches."""

from __future__ import annotations

import asyncio
import time

import pytest

from actors.system import Actor, Address, AsyncioSystemBase, Terminated, handles

from .stage import Diary, Do, Say, Urgent, fail, rest, stage


class Named(Actor):
    """A tree of actors that write down the order of their ends."""

    def __init__(self, diary: list[str], depth: int) -> None:
        super().__init__()
        self.diary = diary
        self.depth = depth

    def pre_start(self) -> None:
        for n in range(2 if self.depth else 0):
            self.spawn(Named, self.diary, self.depth - 1, name=f"{self.name}{n}")

    def post_stop(self) -> None:
        self.diary.append(self.name)


def test_children_end_before_their_parents():
    diary: list[str] = []

    async def play(system: AsyncioSystemBase) -> None:
        root = system.spawn(Named, diary, 2, name="r")
        await rest()
        assert await system.stop(root, 1)

    stage(play)
    assert diary == ["r00", "r01", "r0", "r10", "r11", "r1", "r"]


def test_the_youngest_top_level_actor_ends_first():
    diary: list[str] = []

    async def play(system: AsyncioSystemBase) -> None:
        for name in ("broker", "leases", "seats"):
            system.spawn(Named, diary, 0, name=name)
        await rest()

    stage(play)
    assert diary == ["seats", "leases", "broker"]


def test_mail_that_waits_becomes_dead_letters():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)
        await rest()
        system.tell(actor, Do(lambda me: me.stop()))
        system.tell(actor, Say("too late"))
        await rest()

    assert stage(play).dead_letters == {"stopped": 1, "no_actor": 1}
    assert diary == ["started", "stopped"]


def test_watchers_hear_once_after_the_last_words_also_when_it_is_gone_already():
    diary: list[object] = []
    kept: list[Address] = []

    def last_words(actor: Actor) -> None:
        actor.tell(kept[0], Say("last words"))
        actor.stop()

    async def play(system: AsyncioSystemBase) -> None:
        watcher, other = system.spawn(Diary, diary), system.spawn(Diary, [])
        kept.append(watcher)
        system.tell(watcher, Do(lambda me: me.watch(other)))
        system.tell(watcher, Do(lambda me: me.watch(other)))
        await rest()
        system.tell(other, Do(last_words))
        await rest()
        assert diary == ["started", "last words", Terminated(other, "stop")]
        system.tell(watcher, Do(lambda me: me.watch(other)))
        await rest()
        assert diary[3:] == [Terminated(other, "stop")]

    stage(play)


def test_a_restart_is_no_end_and_a_restarted_watcher_no_longer_watches():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        watcher, other = system.spawn(Diary, diary), system.spawn(Diary, [])
        system.tell(watcher, Do(lambda me: me.watch(other)))
        system.tell(other, Do(fail))
        await asyncio.sleep(1)
        assert diary == ["started"]
        system.tell(watcher, Do(fail))
        await asyncio.sleep(1)
        await system.stop(other, 1)
        await rest()
        assert diary == ["started", "stopped", "started"]

    stage(play)


def test_only_children_can_be_stopped():
    async def play(system: AsyncioSystemBase) -> None:
        actor, stranger = system.spawn(Diary, []), system.spawn(Diary, [])

        def stop_stranger(me: Actor) -> str:
            with pytest.raises(ValueError, match="is no child of"):
                me.stop(stranger)
            return "refused"

        def spawn_and_stop(me: Actor) -> Address:
            child = me.spawn(Diary, [])
            me.stop(child)
            return child

        assert await system.aask(actor, Do(stop_stranger), 1) == "refused"
        child = await system.aask(actor, Do(spawn_and_stop), 1)
        await rest()
        assert system.tree()[0].children == ()
        await system.aask(actor, Do(lambda me: me.stop(child)), 1)

    stage(play)


def test_stopping_during_the_backoff_ends_it():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)
        system.tell(actor, Do(fail))
        await rest()
        assert await system.stop(actor, 1)
        await asyncio.sleep(60)

    stage(play)
    assert diary == ["started", "stopped"]


@pytest.mark.field("C47")
def test_a_parent_stopped_while_it_creates_a_child_leaves_none():
    living: list[int] = []

    class Child(Actor):
        def pre_start(self) -> None:
            living.append(1)

        def post_stop(self) -> None:
            living.pop()

    class Parent(Actor):
        @handles(Say)
        def on_say(self, message: Say, sender: Address) -> None:
            self.spawn(Child)
            self.tell(self.me, message)

    async def play(system: AsyncioSystemBase) -> None:
        for n in range(500):
            parent = system.spawn(Parent)
            system.tell(parent, Say())
            for _ in range(n % 4):
                await asyncio.sleep(0)
            assert await system.stop(parent, 10)
            assert living == [] and system.tree() == ()

    stage(play)


@pytest.mark.field("C47")
@pytest.mark.parametrize("failing", [False, True])
def test_brakes_and_stops_are_heard_under_a_flood(failing):
    """On the real clock: 10,000 messages of 6 ms wait, a 5 ms timer repeats."""
    limit_s = 0.25 + 0.006

    class Seat(Actor):
        def __init__(self, runs: list[int]) -> None:
            super().__init__()
            self.runs = runs
            self.held = False

        def pre_start(self) -> None:
            self.timer("tick", 0.005, Do(lambda me: None))

        @handles(Do)
        def on_tick(self, message: Do, sender: Address) -> None:
            self.timer("tick", 0.005, message)

        @handles(Say)
        def on_say(self, message: Say, sender: Address) -> None:
            self.runs.append(int(message.text))
            end = time.perf_counter() + 0.006
            while time.perf_counter() < end:
                pass
            if failing and int(message.text) % 3 == 0:
                raise ValueError("every third")

        @handles(Urgent, urgent=True)
        def on_brake(self, message: Urgent, sender: Address) -> None:
            self.held = self.held or message.text == "hold"
            self.tell(sender, (self.held, self._myRef.timers.keys() | set()))

    async def main() -> None:
        from actors.system import Supervision

        runs: list[int] = []
        system = AsyncioSystemBase()
        rule = Supervision(most=100_000, backoff_s=0.001, backoff_cap_s=0.001)
        seat = system.spawn(Seat, runs, supervision=rule)
        for n in range(9_900):
            system.tell(seat, Say(str(n)))
        await asyncio.sleep(0.1)
        took = []
        for text in ("hold", "status"):
            began = time.perf_counter()
            held, timers = await system.aask(seat, Urgent(text), 5)  # type: ignore[misc]
            took.append(time.perf_counter() - began)
            assert held and timers <= {"tick"}
        began = time.perf_counter()
        assert await system.stop(seat, 5)
        took.append(time.perf_counter() - began)
        assert max(took) < limit_s, took
        assert runs == sorted(set(runs))
        await system.shutdown_async()

    asyncio.run(main())
