"""A dead letter that an operator replays runs, whatever the ledger holds against it; what is no
dead letter is refused with what the ledger says. Never a success without a turn."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from actors.delivery import Nak
from actors.machines.signals import Hold, Lift
from actors.seat import INBOX
from crewlet.broker.port import DeadLetter
from crewlet.errors import StoreUnavailable
from crewlet.events import decode
from crewlet.inbound.ledger import ledger_key, message_key
from crewlet.node.dead_letters import ReplayRow, replay
from crewlet.turn import Abandon, Answered, Turn
from tests.node.conversing import Talk, talking

HOUR = 3600.0

pytestmark = pytest.mark.field("C02")


async def broken(_: Turn) -> Nak:
    return Nak("broken")


async def declined(_: Turn) -> Abandon:
    return Abandon("the model declined")


async def worked(_: Turn) -> str:
    return "worked"


async def buried(scene: Talk, count: int = 1) -> list[DeadLetter]:
    """The dead letters, once there are so many; the handler is mended then."""
    async with asyncio.timeout(HOUR):
        while len(letters := await scene.node.broker.dead_letters(10)) < count:
            await asyncio.sleep(1)
    scene.turns.clear()
    scene.work = worked
    return list(letters)


async def again(scene: Talk, id: str, *, dry_run: bool = False) -> ReplayRow:
    node = scene.node
    seats = [seat.handle for seat in node.company.seats]
    return await replay(node.broker, node.ledger, id, dry_run=dry_run, seats=seats)


def event_id(letter: DeadLetter) -> str:
    return decode(letter.body).id


def ids(scene: Talk) -> list[list[str]]:
    return [[event.id for event in turn.events] for turn in scene.turns]


@pytest.mark.certifies(94, 180)
def test_a_trigger_that_a_turn_gave_up_is_refused_with_the_row_that_stands_in_its_way() -> None:
    async def test(scene: Talk) -> None:
        scene.work = declined
        sent = await scene.node.send("dev", "hello")
        await asyncio.sleep(10)
        (turn,) = scene.turns
        scene.work = worked
        for dry_run in (True, False):
            row = await again(scene, sent.event.id, dry_run=dry_run)
            assert not row.replayed
            assert turn.turn_id in row.note and ledger_key("dev", sent.event.id) in row.note
        await asyncio.sleep(60)
        assert len(scene.turns) == 1 and await scene.waiting() == 0

    talking(test)


@pytest.mark.certifies(94, 180)
def test_a_second_life_that_a_turn_gave_up_is_over_and_a_third_is_refused() -> None:
    async def test(scene: Talk) -> None:
        scene.work = broken
        await scene.node.send("dev", "hello")
        (letter,) = await buried(scene)
        scene.work = declined
        assert (await again(scene, letter.id)).replayed
        await asyncio.sleep(60)
        assert ids(scene) == [[event_id(letter)]]
        for id in (letter.id, event_id(letter)):
            row = await again(scene, id)
            assert not row.replayed and row.note
        assert scene.turns[0].turn_id in (await again(scene, event_id(letter))).note
        await asyncio.sleep(60)
        assert len(scene.turns) == 1

    talking(test)


@pytest.mark.certifies(90, 180)
def test_a_dead_letter_runs_although_the_ledger_holds_its_event() -> None:
    """Another turn was done with it meanwhile; the dry run says which, and changes nothing."""

    async def test(scene: Talk) -> None:
        scene.work = broken
        await scene.node.send("dev", "hello")
        (letter,) = await buried(scene)
        at = scene.node.clock.now() - timedelta(minutes=1)
        await scene.node.ledger.record(
            "dev", [event_id(letter)], turn_id="turn-9", node="n9", at=at
        )
        dry = await again(scene, event_id(letter), dry_run=True)
        assert not dry.replayed and dry.id == letter.id
        assert "to be forgotten: turn turn-9 on n9" in dry.note
        assert await scene.node.ledger.has("dev", event_id(letter))
        assert (await again(scene, event_id(letter))).replayed, "by the id of its event"
        await asyncio.sleep(60)
        assert ids(scene) == [[event_id(letter)]]
        assert not (await again(scene, letter.id)).replayed
        await asyncio.sleep(60)
        assert len(scene.turns) == 1 and await scene.node.broker.dead_letters(10) == []

    talking(test)


@pytest.mark.certifies(92, 93, 180)
def test_a_dead_letter_runs_although_a_turn_of_its_thread_was_shown_it() -> None:
    async def test(scene: Talk) -> None:
        scene.work = broken
        message = await scene.chat("1718.002", "first")
        (letter,) = await buried(scene)

        async def along(_: Turn) -> Answered:
            return Answered("both", shown=(message,))

        scene.work = along
        await scene.chat("1718.003", "second")
        await asyncio.sleep(60)
        assert await scene.node.ledger.has("dev", message_key(message))
        scene.turns.clear()
        assert (await again(scene, letter.id)).replayed
        await asyncio.sleep(60)
        assert ids(scene) == [[event_id(letter)]]

    talking(test)


@pytest.mark.certifies(90, 97, 180)
@pytest.mark.parametrize("together", [True, False])
def test_those_of_one_trigger_are_replayed_together_or_alone(together: bool) -> None:
    """Two comments that waited together failed together: each is a letter of its own."""

    async def test(scene: Talk) -> None:
        async def slow(_: Turn) -> None:
            await asyncio.sleep(30)

        scene.work = slow
        await scene.comment(1, "busy")
        await asyncio.sleep(1)
        scene.work = broken
        await scene.comment(7, "one")
        await scene.comment(7, "two")
        letters = await buried(scene, 2)
        wanted = [event_id(letter) for letter in letters]
        for letter in letters:
            assert not (await again(scene, letter.id, dry_run=True)).replayed
        for letter in letters if together else letters[:1]:
            assert (await again(scene, letter.id)).replayed
        await asyncio.sleep(60)
        seen = [id for turn in ids(scene) for id in turn]
        assert sorted(seen) == sorted(wanted if together else wanted[:1]), "each once"
        assert {turn.attempt for turn in scene.turns} == {1}
        left = [letter.id for letter in await scene.node.broker.dead_letters(10)]
        assert left == ([] if together else [letters[1].id])

    talking(test)


@pytest.mark.certifies(180)
@pytest.mark.parametrize("waits", [True, False])
def test_a_replay_that_was_cut_off_is_not_made_twice(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """The copy was stored, the letter did not leave the list, and the broker has forgotten the
    copy's id: the second life is found in the mailbox, or in the ledger."""

    async def test(scene: Talk) -> None:
        scene.work = broken
        await scene.node.send("dev", "hello")
        (letter,) = await buried(scene)
        if waits:
            assert await scene.node.runtime.brake("dev", INBOX, Hold("a person"))
            await asyncio.sleep(1)

        async def cut(id: str) -> bool:
            raise ConnectionError("cut off")

        with monkeypatch.context() as patch, pytest.raises(ConnectionError):
            patch.setattr(scene.node.broker, "drop_dead_letter", cut)
            await again(scene, letter.id)
        await asyncio.sleep(600)
        assert len(scene.turns) == (0 if waits else 1)
        row = await again(scene, letter.id)
        assert not row.replayed
        assert ("waits in the mailbox" if waits else scene.turns[0].turn_id) in row.note
        assert await scene.node.broker.dead_letters(10) == []
        if waits:
            await scene.node.runtime.brake("dev", INBOX, Lift("a person"))
        await asyncio.sleep(60)
        assert ids(scene) == [[event_id(letter)]]

    talking(test)


@pytest.mark.certifies(180)
def test_a_replay_that_never_reached_the_broker_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(scene: Talk) -> None:
        scene.work = broken
        await scene.node.send("dev", "hello")
        (letter,) = await buried(scene)

        async def cut(topic: str, body: bytes, **_: object) -> None:
            raise ConnectionError("cut off")

        with monkeypatch.context() as patch, pytest.raises(ConnectionError):
            patch.setattr(scene.node.broker, "publish", cut)
            await again(scene, letter.id)
        await asyncio.sleep(600)
        assert scene.turns == []
        assert (await again(scene, letter.id)).replayed
        await asyncio.sleep(60)
        assert ids(scene) == [[event_id(letter)]]

    talking(test)


@pytest.mark.certifies(180)
def test_a_ledger_that_cannot_forget_leaves_the_letter_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Published into a row that still stands, it would be dropped as worked: a success and no
    turn."""

    async def test(scene: Talk) -> None:
        scene.work = broken
        await scene.node.send("dev", "hello")
        (letter,) = await buried(scene)

        async def away(seat: str, event_id: str) -> None:
            raise StoreUnavailable("away")

        with monkeypatch.context() as patch, pytest.raises(StoreUnavailable):
            patch.setattr(scene.node.ledger, "forget", away)
            await again(scene, letter.id)
        await asyncio.sleep(60)
        assert scene.turns == []
        assert [one.id for one in await scene.node.broker.dead_letters(10)] == [letter.id]
        assert (await again(scene, letter.id)).replayed

    talking(test)
