"""Unmodified Thespian actors on our base. Thespian's own tests cover the rest."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta

import pytest
from thespian.actors import Actor as ThespianActor
from thespian.actors import (
    ActorExitRequest,
    ActorSystem,
    ChildActorExited,
    DeadEnvelope,
    PoisonMessage,
    Thespian_ActorStatus,
    Thespian_StatusReq,
    ThespianWatch,
    WakeupMessage,
    WatchMessage,
)

from actors.system import AsyncioSystemBase, Refused, run_virtual

from .stage import Diary, Do, Say, rest, stage


class Echo(ThespianActor):
    def receiveMessage(self, message, sender):
        if isinstance(message, str):
            self.send(sender, message)


class Failing(ThespianActor):
    runs = 0

    def receiveMessage(self, message, sender):
        if message == "runs?":
            self.send(sender, self.runs)
        elif isinstance(message, str):
            self.runs += 1
            raise ValueError("poisoned")


class Mother(ThespianActor):
    def receiveMessage(self, message, sender):
        if isinstance(message, type):
            self.asker = sender
            self.child = self.createActor(message)
            self.send(sender, self.child)
        elif message == "last":
            self.asker = sender
        elif isinstance(message, ChildActorExited | ActorExitRequest):
            self.send(self.asker, type(message).__name__)


class Unborn(ThespianActor):
    def __init__(self):
        raise RuntimeError("no")

    def receiveMessage(self, message, sender):
        pass


class Leaver(ThespianActor):
    def receiveMessage(self, message, sender):
        raise SystemExit


def test_on_a_running_loop_with_aask():
    async def play(system: AsyncioSystemBase) -> None:
        echo = system.newPrimaryActor(Echo)
        assert await system.aask(echo, "hello", 1) == "hello"

    stage(play)


def test_a_message_is_tried_twice_and_returned_as_poison():
    async def play(system: AsyncioSystemBase) -> None:
        failing = system.newPrimaryActor(Failing)
        poison = await system.aask(failing, "bad", 1)
        assert isinstance(poison, PoisonMessage)
        assert poison.poisonMessage == "bad" and "ValueError: poisoned" in poison.details
        assert await system.aask(failing, "runs?", 1) == 2

    stage(play)


def test_poison_is_not_answered_with_poison():
    class Allergic(ThespianActor):
        def receiveMessage(self, message, sender):
            raise ValueError

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.newPrimaryActor(Allergic)
        system.tell(actor, PoisonMessage("x"))
        await rest()

    assert stage(play).dead_letters == {}


def test_parents_hear_of_exits_and_failed_creations():
    async def play(system: AsyncioSystemBase) -> None:
        mother = system.newPrimaryActor(Mother)
        for kind in (Leaver, Unborn):
            child = await system.aask(mother, kind, 1)
            ask = asyncio.create_task(system.aask(mother, "last", 5))
            await rest()
            system.tell(child, "leave")
            if kind is Leaver:
                assert await ask == "ChildActorExited"
            else:
                ask.cancel()

    stage(play)


def test_a_top_level_actor_that_can_t_be_made_raises():
    async def play(system: AsyncioSystemBase) -> None:
        with pytest.raises(RuntimeError, match="no"):
            system.newPrimaryActor(Unborn)
        assert system.tree() == ()

    stage(play)


def test_wakeups_take_virtual_time():
    class Sleeper(ThespianActor):
        def receiveMessage(self, message, sender):
            if isinstance(message, WakeupMessage):
                self.send(self.asker, (message.payload, message.delayPeriod))
            elif message == "sleep":
                self.asker = sender
                self.wakeupAfter(timedelta(hours=1), "up")

    async def play(system: AsyncioSystemBase) -> None:
        sleeper = system.newPrimaryActor(Sleeper)
        answer = await system.aask(sleeper, "sleep", 4_000)
        assert answer == ("up", timedelta(hours=1))
        assert system.clock.monotonic() >= 3_600

    stage(play)


def test_status_and_dead_letters():
    letters = []

    class Undertaker(ThespianActor):
        def receiveMessage(self, message, sender):
            if message == "start":
                self.handleDeadLetters()
            elif isinstance(message, DeadEnvelope):
                letters.append((message.deadAddress, message.deadMessage))

    async def play(system: AsyncioSystemBase) -> None:
        echo, undertaker = system.newPrimaryActor(Echo), system.newPrimaryActor(Undertaker)
        system.tell(undertaker, "start")
        status = await system.aask(echo, Thespian_StatusReq(), 1)
        assert isinstance(status, Thespian_ActorStatus) and status.actorAddress == echo
        ours = await system.aask(system.spawn(Diary, []), Thespian_StatusReq(), 1)
        assert isinstance(ours, Thespian_ActorStatus) and ours.actorClass == "Diary"
        await system.stop(echo, 1)
        system.tell(echo, "too late")
        await rest()
        assert letters == [(echo, "too late")]

    stage(play)


def test_watched_descriptors():
    class Reader(ThespianActor):
        def receiveMessage(self, message, sender):
            if isinstance(message, WatchMessage):
                self.send(self.asker, os.read(message.ready[0], 10))
            elif isinstance(message, int):
                self.asker = sender
                return ThespianWatch([message])
            return None

    async def main() -> None:
        system = AsyncioSystemBase()
        read, write = os.pipe()
        try:
            ask = asyncio.create_task(system.aask(system.newPrimaryActor(Reader), read, 5))
            await asyncio.sleep(0)
            os.write(write, b"bytes")
            assert await ask == b"bytes"
            await system.shutdown_async()
        finally:
            os.close(read)
            os.close(write)

    run_virtual(main)


def test_global_names():
    async def play(system: AsyncioSystemBase) -> None:
        first = system.newPrimaryActor(Echo, None, "the echo")
        assert system.newPrimaryActor(Echo, None, "the echo") is first
        await system.stop(first, 1)
        assert system.newPrimaryActor(Echo, None, "the echo") is not first

    stage(play)


def test_both_kinds_talk_and_ours_may_be_a_thespian_s_child():
    async def play(system: AsyncioSystemBase) -> None:
        diary: list[object] = []

        class Ours(Diary):
            def __init__(self) -> None:
                super().__init__(diary)

        mother = system.newPrimaryActor(Mother)
        child = await system.aask(mother, Ours, 1)
        system.tell(child, Say("hello"))
        await rest()
        assert diary == ["started", "hello"]
        assert await system.stop(mother, 1)
        assert diary == ["started", "hello", "stopped"]

    stage(play)


def test_an_exit_request_ends_ours_before_its_mail():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)
        await rest()
        system.tell(actor, Say("mail"))
        system.tell(actor, ActorExitRequest())
        await rest()
        assert system.tree() == ()

    stage(play)
    assert diary == ["started", "stopped"]


def test_what_is_refused_says_why():
    async def play(system: AsyncioSystemBase) -> None:
        with pytest.raises(Refused, match="code that arrives in a message"):
            system.loadActorSource("x.zip")
        with pytest.raises(Refused):
            system.newPrimaryActor(Echo, None, None, "hash")

        class Asking(ThespianActor):
            def receiveMessage(self, message, sender):
                if message == "convention":
                    self.notifyOnSystemRegistrationChanges()
                elif message == "remote":
                    self.preRegisterRemoteSystem("host", {})

        asking = system.newPrimaryActor(Asking)
        for what in ("convention", "remote"):
            answer = await system.aask(asking, what, 1)
            assert isinstance(answer, PoisonMessage) and "Refused" in answer.details

    stage(play)


def test_blocking_verbs_raise_on_the_loop():
    async def play(system: AsyncioSystemBase) -> None:
        echo = system.newPrimaryActor(Echo)
        with pytest.raises(RuntimeError, match="await aask"):
            system.ask(echo, "x", 1)
        with pytest.raises(RuntimeError, match="await aask"):
            system.listen(1)

    stage(play)


def test_a_program_without_a_loop_and_one_with_threads_beside_it():
    base = AsyncioSystemBase()
    system = ActorSystem(systemBase=base, capabilities={"x": 1}, transientUnique=True)
    base.bind(system)
    try:
        assert base.capabilities["x"] == 1
        echo = system.createActor(Echo)
        assert system.ask(echo, "hello", 5) == "hello"
        system.tell(echo, "again")
        assert system.listen(5) == "again"
        assert system.listen(0.01) is None
        with system.private() as private:
            assert private.ask(echo, "private", 5) == "private"
    finally:
        system.shutdown()
    assert base.loop.is_closed()


def test_threads_ask_a_system_on_a_running_loop():
    async def main() -> None:
        base = AsyncioSystemBase()
        diary = base.spawn(Diary, [])
        answer = await asyncio.to_thread(base.ask, diary, Do(lambda me: "from the loop"), 5)
        assert answer == "from the loop"
        await base.shutdown_async()

    asyncio.run(main())
