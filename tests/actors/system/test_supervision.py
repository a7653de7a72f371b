"""What becomes of an actor whose handler raised."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from actors.system import (
    Actor,
    Address,
    AsyncioSystemBase,
    ChildFailed,
    Supervision,
    Terminated,
    handles,
)
from actors.system.supervision import Scope

from .stage import Diary, Do, Say, fail, rest, stage


class Parent(Diary):
    """Spawns what it is told to, and keeps the address."""

    kept: dict[str, Address]

    def __init__(self, diary: list[object]) -> None:
        super().__init__(diary)
        self.kept = {}


def child(name: str, diary: list[object], rule: Supervision) -> Do:
    def spawn(parent: Parent) -> Address:
        address = parent.spawn(Diary, diary, name=name, supervision=rule)
        parent.watch(address)
        return address

    return Do(spawn)


async def make(system: AsyncioSystemBase, parent: Address, do: Do) -> Address:
    address = await system.aask(parent, do, 1)
    assert isinstance(address, Address)
    return address


def test_a_restart_keeps_address_and_mail_and_runs_the_failing_message_once():
    runs: list[str] = []

    class Fragile(Diary):
        def on_say(self, message: Say, sender: Address) -> None:
            runs.append(message.text)
            if message.text == "bad":
                raise ValueError("bad")

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Fragile, [])
        for text in ("one", "bad", "two", "three"):
            system.tell(actor, Say(text))
        await asyncio.sleep(1)
        assert system.tree()[0].restarts == 1
        assert runs == ["one", "bad", "two", "three"]

    stage(play)


def test_no_mail_is_handled_during_the_backoff_and_none_is_lost():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        rule = Supervision(backoff_s=10)
        actor = system.spawn(Diary, diary, supervision=rule)
        system.tell(actor, Do(fail))
        await asyncio.sleep(1)
        system.tell(actor, Say("meanwhile"))
        await asyncio.sleep(1)
        assert system.tree()[0].state == "waiting" and system.tree()[0].depth == 1
        assert diary == ["started", "stopped"]
        await asyncio.sleep(10)
        assert diary == ["started", "stopped", "started", "meanwhile"]

    stage(play)


def test_the_backoff_doubles_to_its_cap():
    starts: list[float] = []

    class Doomed(Actor):
        def pre_start(self) -> None:
            starts.append(self.clock.monotonic())
            raise ValueError("never")

    async def play(system: AsyncioSystemBase) -> None:
        rule = Supervision(most=8, within_s=10_000, backoff_s=1, backoff_cap_s=8)
        system.spawn(Doomed, supervision=rule)
        await asyncio.sleep(1_000)
        assert system.tree() == ()

    stage(play, seed=1)
    assert len(starts) == 9
    waits = [later - sooner for sooner, later in itertools.pairwise(starts)]
    for wait, full in zip(waits, (1, 2, 4, 8, 8, 8, 8, 8), strict=True):
        assert full / 2 <= wait <= full


@pytest.mark.parametrize(("exceeded", "parents_restarts"), [("stop", 0), ("escalate", 1)])
def test_more_restarts_than_the_window_allows(exceeded, parents_restarts):
    diary: list[object] = []
    rule = Supervision(most=2, within_s=60, when_exceeded=exceeded)

    async def play(system: AsyncioSystemBase) -> None:
        parent = system.spawn(Parent, diary)
        actor = await make(system, parent, child("c", [], rule))
        for _ in range(3):
            system.tell(actor, Do(fail))
            await asyncio.sleep(2)
        (shown,) = system.tree()
        assert shown.restarts == parents_restarts and shown.children == ()

    stage(play)
    told = [entry.action for entry in diary if isinstance(entry, ChildFailed)]
    # An escalation ends the incarnation that would have been told.
    assert told == ["restart", "restart", *(["stop"] if exceeded == "stop" else [])]


def test_failures_apart_from_one_another_are_no_burst():
    async def play(system: AsyncioSystemBase) -> None:
        rule = Supervision(most=2, within_s=60)
        actor = system.spawn(Diary, [], supervision=rule)
        for _ in range(10):
            system.tell(actor, Do(fail))
            await asyncio.sleep(40)
        assert system.tree()[0].restarts == 10

    stage(play)


def test_resume_goes_on_as_if_nothing_was():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary, supervision=Supervision(on_failure="resume"))
        system.tell(actor, Do(fail))
        system.tell(actor, Say("next"))
        await rest()

    stage(play)
    assert diary == ["started", "next", "stopped"]


def test_stop_tells_the_reason():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        parent = system.spawn(Parent, diary)
        actor = await make(system, parent, child("c", [], Supervision(on_failure="stop")))
        system.tell(actor, Do(fail))
        await rest()
        failed, gone = diary[1:]
        assert failed == ChildFailed(actor, "c", "ValueError: on purpose", "stop")
        assert gone == Terminated(actor, "ValueError: on purpose")

    stage(play)


def test_escalation_fails_the_parent_which_restarts_without_its_children():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        parent = system.spawn(Parent, diary)
        actor = await make(system, parent, child("c", diary, Supervision(on_failure="escalate")))
        await make(system, parent, child("other", diary, Supervision()))
        diary.clear()
        system.tell(actor, Do(fail))
        await asyncio.sleep(1)
        (shown,) = system.tree()
        assert shown.restarts == 1 and shown.children == () and shown.state == "running"

    stage(play)
    assert diary == ["stopped", "stopped", "stopped", "started", "stopped"]


@pytest.mark.parametrize(("scope", "others"), [("one_for_one", 0), ("all_for_one", 1)])
def test_the_scope_takes_the_siblings_along(scope: Scope, others: int):
    async def play(system: AsyncioSystemBase) -> None:
        parent = system.spawn(Parent, [])
        rule = Supervision(scope=scope)
        first = await make(system, parent, child("first", [], rule))
        await make(system, parent, child("second", [], rule))
        system.tell(first, Do(fail))
        await asyncio.sleep(1)
        restarts = [shown.restarts for shown in system.tree()[0].children]
        assert restarts == [1, others]

    stage(play)


def test_a_constructor_that_raises_is_supervised():
    tries: list[int] = []

    class ThirdTime(Actor):
        def __init__(self) -> None:
            super().__init__()
            tries.append(1)
            if len(tries) < 3:
                raise OSError("not yet")

        @handles(Say)
        def on_say(self, message: Say, sender: Address) -> None:
            self.tell(sender, "here")

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(ThirdTime)
        assert await system.aask(actor, Say(), 30) == "here"

    stage(play)
    assert len(tries) == 3


def test_a_start_that_failed_is_not_resumed():
    class Never(Actor):
        def pre_start(self) -> None:
            raise OSError("no")

    async def play(system: AsyncioSystemBase) -> None:
        system.spawn(Never, supervision=Supervision(on_failure="resume"))
        await rest()
        assert system.tree() == ()

    stage(play)


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, GeneratorExit])
def test_no_exception_of_a_handler_gets_out(error: type[BaseException]):
    def raising(actor: Actor) -> None:
        raise error()

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, [])
        system.tell(actor, Do(raising))
        assert await system.aask(actor, Do(lambda me: "well"), 10) == "well"
        assert system.tree()[0].restarts == 1

    stage(play)


def test_an_exception_that_can_t_be_printed_is_a_reason_too():
    class Nasty(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    def raising(actor: Actor) -> None:
        raise Nasty

    async def play(system: AsyncioSystemBase) -> None:
        parent = system.spawn(Parent, diary)
        actor = await make(system, parent, child("c", [], Supervision(on_failure="stop")))
        system.tell(actor, Do(raising))
        await rest()

    diary: list[object] = []
    stage(play)
    assert [entry.reason for entry in diary if isinstance(entry, ChildFailed)] == ["Nasty"]


def test_a_post_stop_that_raises_does_not_hold_up_the_end():
    class Sour(Actor):
        def post_stop(self) -> None:
            raise ValueError("sour")

    async def play(system: AsyncioSystemBase) -> None:
        assert await system.stop(system.spawn(Sour), 1)

    stage(play)


def test_the_children_of_a_failed_incarnation_are_gone_before_the_next_starts():
    diary: list[object] = []

    class Child(Actor):
        def post_stop(self) -> None:
            diary.append("child stopped")

    class Mother(Actor):
        def pre_start(self) -> None:
            diary.append("mother started")
            self.spawn(Child, name="the child")

        @handles(Do)
        def on_do(self, message: Do, sender: Address) -> None:
            message.act(self)

    async def play(system: AsyncioSystemBase) -> None:
        mother = system.spawn(Mother)
        system.tell(mother, Do(fail))
        await asyncio.sleep(1)
        assert [shown.name for shown in system.tree()[0].children] == ["the child"]

    stage(play)
    assert diary == ["mother started", "child stopped", "mother started", "child stopped"]
