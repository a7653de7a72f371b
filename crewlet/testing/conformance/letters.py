"""Cases: dead letters are stored once, whole, and outside every live namespace."""

from __future__ import annotations

from typing import Final

from actors.delivery import Dead, HandBack
from crewlet import topics
from crewlet.broker.port import CompanyBroker, DeadLetter
from crewlet.events.envelope import MAX_EVENT_BYTES
from crewlet.testing.conformance.broadcasts import Heard
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import Harness, Seat, bodies, seat, send, settled_to

CASES: Final = Table()


@CASES.case(23, 43, 44)
async def a_dead_letter_keeps_body_reason_and_count(harness: Harness) -> None:
    box = await seat(harness)
    (receipt,) = await box.send("poison")
    await box.send("next")
    (one,) = await box.fetch(1)
    await box.client.settle([(one, HandBack())])
    (one,) = await box.fetch(1)
    assert one.position == receipt.position
    await box.client.settle([(one, Dead("no: länger\nals eine Zeile"))])
    (letter,) = await _letters(box)
    assert letter.body == b"poison"
    assert " ".join(letter.reason.split()) == "no: länger als eine Zeile"
    assert (letter.deliveries, letter.message_id) == (2, one.message_id)
    assert letter.at.utcoffset() is not None
    await settled_to(box.client, box.mailbox, waiting=1, held=0)
    assert bodies(await box.fetch(5)) == ["next"]


@CASES.case(43)
async def given_up_twice_it_is_stored_once(harness: Harness) -> None:
    """A settle whose answer was lost is sent again."""
    box = await seat(harness)
    await box.send("one", "two")
    one, two = await box.take(2)
    await box.client.settle([(one, Dead("once"))])
    await box.client.settle([(one, Dead("once"))])
    await box.client.settle([(two, Dead("other"))])
    assert sorted(letter.body for letter in await _letters(box)) == [b"one", b"two"]
    await settled_to(box.client, box.mailbox, waiting=0, held=0)


@CASES.case(23)
async def letters_of_two_groups_are_two(harness: Harness) -> None:
    one = await seat(harness)
    two = await seat(
        harness, mailbox=type(one.mailbox)(one.mailbox.topic, one.mailbox.group + "-2")
    )
    await one.send("poison")
    for box in (one, two):
        await box.client.settle([(d, Dead("both")) for d in await box.take(1)])
    assert len(await _letters(one)) == len(await _letters(two)) == 1


@CASES.case(43, 49)
async def the_largest_message_fits_into_a_dead_letter(harness: Harness) -> None:
    box = await seat(harness)
    largest = b"z" * MAX_EVENT_BYTES
    await box.client.publish(box.mailbox.topic, largest, message_id=harness.name())
    (one,) = await box.fetch()
    await box.client.settle([(one, Dead("é" * 5000))])
    (letter,) = await _letters(box)
    assert letter.body == largest
    assert 1000 <= len(letter.reason.encode()) <= 2048
    assert set(letter.reason) <= {"é", "…"}
    assert await box.client.drop_dead_letter(letter.id) is True


@CASES.case(43)
async def letters_are_listed_shown_and_dropped(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a", "b", "c")
    for one in await box.take(3):
        await box.client.settle([(one, Dead("listed"))])
    newest = await _letters(box)
    assert [letter.body for letter in newest] == [b"c", b"b", b"a"]
    assert len(await box.client.dead_letters(2)) == 2
    middle = newest[1]
    assert await box.client.dead_letter(middle.id) == middle
    assert await box.client.drop_dead_letter(middle.id) is True
    assert await box.client.drop_dead_letter(middle.id) is False
    assert await box.client.dead_letter(middle.id) is None
    assert [letter.body for letter in await _letters(box)] == [b"c", b"a"]


@CASES.case(43)
async def an_id_that_names_no_letter_is_none(harness: Harness) -> None:
    box = await seat(harness)
    for unknown in ("999999999", "no-such-letter", ""):
        assert await box.client.dead_letter(unknown) is None
        assert await box.client.drop_dead_letter(unknown) is False
    await box.send("a")
    await box.client.settle([(one, Dead("known")) for one in await box.take(1)])
    (letter,) = await _letters(box)
    assert await box.client.dead_letter(letter.id) == letter


@CASES.case(11, 43)
async def a_letter_outlives_the_client_that_stored_it(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("a")
    await box.client.settle([(one, Dead("kept")) for one in await box.take(1)])
    await box.client.stop()
    peer = await harness.client()
    assert [letter.body for letter in await _of(peer, box)] == [b"a"]


@CASES.case(23)
async def the_stream_of_events_shows_no_poison(harness: Harness) -> None:
    box = await seat(harness)
    live, dead = Heard(), Heard()
    await box.client.subscribe(topics.EVENTS, live.listen)
    await box.client.subscribe(topics.DEAD_LETTERS, dead.listen)
    await box.send("poison")
    await box.client.settle([(one, Dead("hidden")) for one in await box.take(1)])
    topic = topics.event(harness.name())
    await send(box.client, topic, "control")
    await live.until(topic)
    await dead.until(topics.dead_letter(box.mailbox))
    assert all(not one.startswith("dlq") for one, _ in live.messages)


async def _letters(box: Seat) -> list[DeadLetter]:
    """The newest first, of this mailbox only."""
    return await _of(box.client, box)


async def _of(client: CompanyBroker, box: Seat) -> list[DeadLetter]:
    letters = await client.dead_letters(1000)
    return [letter for letter in letters if letter.mailbox == box.mailbox]
