"""Cases: a look at a mailbox shows what waits, and changes nothing of it."""

from __future__ import annotations

from typing import Final

from actors.delivery import HandBack
from crewlet import topics
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import Harness, bodies, counts, seat, settled_to

CASES: Final = Table()


@CASES.case()
async def a_look_shows_the_oldest_and_hands_out_nothing(harness: Harness) -> None:
    box = await seat(harness)
    receipts = await box.send("a", "b", "c")
    for _ in range(3):
        seen = await box.client.peek(box.mailbox, 2)
        assert [one.body for one in seen] == [b"a", b"b"]
        assert [one.position for one in seen] == [one.position for one in receipts[:2]]
        assert not any(one.handed_out for one in seen)
        assert [one.message_id for one in seen] == [f"{box.mailbox.topic}/{x}" for x in "ab"]
    assert seen[0].at <= seen[1].at
    await settled_to(box.client, box.mailbox, waiting=3, held=0)
    taken = await box.take(3)
    assert bodies(taken) == ["a", "b", "c"]
    assert counts(taken) == [1, 1, 1], "looking was counted as a delivery"


@CASES.case()
async def a_look_tells_what_was_handed_out_from_what_was_not(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("done", "held", "back", "fresh")
    done, held, back = await box.take(3)
    await box.done([done])
    await box.client.settle([(back, HandBack())])
    await settled_to(box.client, box.mailbox, waiting=1, held=2)
    seen = await box.client.peek(box.mailbox, 10)
    assert [(one.body, one.handed_out) for one in seen] == [
        (b"held", True),
        (b"back", True),
        (b"fresh", False),
    ]
    await box.done([held, *await box.take(2)])
    await settled_to(box.client, box.mailbox, waiting=0, held=0)
    assert await box.client.peek(box.mailbox, 10) == []


@CASES.case()
async def there_may_be_nothing_to_look_at(harness: Harness) -> None:
    box = await seat(harness)
    assert await box.client.peek(box.mailbox, 5) == []
    await box.send("a")
    assert await box.client.peek(box.mailbox, 0) == []
    assert len(await box.client.peek(box.mailbox, 1)) == 1
    nowhere = topics.inbox_of(harness.name())
    assert await box.client.peek(nowhere, 5) == []
    assert await box.client.ensure(nowhere) is True, "looking made the mailbox"
