"""Typed dispatch, precedence, bounds and fairness."""

from __future__ import annotations

import logging

import pytest
from msgspec import Struct

from actors.system import Actor, Address, AsyncioSystemBase, handles

from .stage import Diary, Do, Say, Urgent, rest, stage


class Other(Struct, frozen=True):
    pass


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("formatted")

    __repr__ = __str__


def test_an_overriding_method_needs_no_second_mark_and_a_new_mark_adds():
    class Louder(Diary):
        def on_say(self, message: Say, sender: Address) -> None:
            self.diary.append(message.text.upper())

        @handles(Other)
        def on_other(self, message: Other, sender: Address) -> None:
            self.diary.append("other")

    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        louder = system.spawn(Louder, diary)
        system.tell(louder, Say("hey"))
        system.tell(louder, Other())
        await rest()

    stage(play)
    assert diary == ["started", "HEY", "other", "stopped"]
    assert Other not in Diary.handlers


def test_the_exact_type_decides():
    class Special(Say, frozen=True):
        pass

    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        system.tell(system.spawn(Diary, diary), Special("x"))
        await rest()

    assert stage(play).dead_letters == {"unhandled": 1}
    assert diary == ["started", "stopped"]


def test_receive_message_runs_the_dispatch_and_keeps_the_exception_in():
    reports = []

    class Picky(Actor):
        @handles(Say)
        def on_say(self, message: Say, sender: Address) -> None:
            raise ValueError(message.text)

        @handles(Do)
        def on_do(self, message: Do, sender: Address) -> None:
            reports.append(self)

    async def play(system: AsyncioSystemBase) -> None:
        address = system.spawn(Picky)
        system.tell(address, Do(print))
        await rest()
        reports[0].receiveMessage(Say("x"), address)
        await rest()
        assert system.tree()[0].restarts == 1

    stage(play)


def test_urgent_mail_goes_first_and_passes_a_full_mailbox():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)
        await rest()
        for n in range(5):
            system.tell(actor, Say(str(n)))
        system.tell(actor, Urgent("now"))
        system.tell(actor, Urgent("then"))
        await rest()

    system = stage(play, mailbox_bound=3)
    assert diary == ["started", "now", "then", "0", "1", "2", "stopped"]
    assert system.dead_letters == {"full": 2}


def test_urgent_mail_keeps_its_order_across_a_restart():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Diary, diary)
        system.tell(actor, Do(lambda me: 1 / 0))
        system.tell(actor, Say("mail"))
        await rest()
        system.tell(actor, Urgent("hold"))
        system.tell(actor, Urgent("lift"))
        import asyncio

        await asyncio.sleep(1)

    stage(play)
    assert diary == ["started", "stopped", "started", "hold", "lift", "mail", "stopped"]


def test_sixteen_messages_a_turn_then_the_next_actor():
    diary: list[object] = []

    async def play(system: AsyncioSystemBase) -> None:
        first, second = system.spawn(Diary, diary), system.spawn(Diary, diary)
        await rest()
        for _ in range(20):
            system.tell(first, Say("first"))
        system.tell(second, Say("second"))
        await rest()

    stage(play)
    assert diary[2:].index("second") == 16


def test_a_flood_leaves_the_loop_its_turn():
    """An actor that keeps itself busy for ever does not keep a timer from being served."""

    class Busy(Actor):
        @handles(Say)
        def on_say(self, message: Say, sender: Address) -> None:
            self.tell(self.me, message)

    async def play(system: AsyncioSystemBase) -> None:
        import asyncio

        system.tell(system.spawn(Busy), Say())
        for _ in range(3):
            await asyncio.sleep(0)

    stage(play)


def test_messages_are_never_formatted(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    seen = []

    async def play(system: AsyncioSystemBase) -> None:
        system.on_dead_letter = lambda letter: seen.append(letter.reason)
        actor = system.spawn(Diary, [])
        system.tell(actor, Unprintable())
        await rest()
        await system.stop(actor, 1)
        system.tell(actor, Unprintable())

    stage(play)
    assert seen == ["unhandled", "gone"]
    assert "Unprintable" in {getattr(record, "kind", "") for record in caplog.records}


def test_a_dead_letter_hook_that_raises_changes_nothing():
    async def play(system: AsyncioSystemBase) -> None:
        system.on_dead_letter = lambda letter: 1 / 0
        actor = system.spawn(Diary, [])
        system.tell(actor, Other())
        assert await system.aask(actor, Do(lambda me: "well"), 1) == "well"

    stage(play)


def test_addresses_are_keys_in_the_order_of_creation_and_do_not_travel():
    import copy
    import pickle

    async def play(system: AsyncioSystemBase) -> None:
        first, second = system.spawn(Diary, []), system.spawn(Diary, [])
        assert first != second and first == first and first < second
        assert {first: 1}[copy.deepcopy(first)] == 1
        with pytest.raises(TypeError, match="does not leave its process"):
            pickle.dumps(first)

    stage(play)


def test_an_asker_gets_one_answer_or_a_timeout():
    class Twice(Actor):
        @handles(Say)
        def on_say(self, message: Say, sender: Address) -> None:
            self.tell(sender, "one")
            self.tell(sender, "two")

    async def play(system: AsyncioSystemBase) -> None:
        actor = system.spawn(Twice)
        assert await system.aask(actor, Say(), 1) == "one"
        with pytest.raises(TimeoutError):
            await system.aask(actor, Other(), 30)

    assert stage(play).dead_letters == {"gone": 1, "unhandled": 1}
