"""Cases: a client that is not live says so, with every verb, and changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from actors.delivery import Done
from actors.ports import NotLive
from crewlet import topics
from crewlet.coordination.store import LEDGER
from crewlet.errors import StoreUnavailable
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import (
    SOON_S,
    Harness,
    Seat,
    bodies,
    now,
    pass_time,
    seat,
    settled_to,
)
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


@CASES.case(50)
async def a_stopped_client_is_not_live_for_every_verb(harness: Harness) -> None:
    box = await seat(harness)
    await box.send("held", "waiting")
    taken = await box.take(1)
    verbs = _verbs(box)
    await box.client.stop()
    for name, verb in verbs.items():
        try:
            await verb()
        except NotLive:
            continue
        raise AssertionError(f"{name} of a stopped client did its work")
    async with raises(NotLive):
        await box.client.settle([(taken[0], Done())])
    peer = await seat(harness, mailbox=box.mailbox)
    await settled_to(peer.client, peer.mailbox, waiting=1, held=1)


@CASES.case(50)
async def a_client_that_was_never_started_is_not_live(harness: Harness) -> None:
    box = await seat(harness)
    idle = await harness.client(started=False)
    assert not idle.connected
    for name, verb in _verbs(Seat(idle, box.mailbox, box.attachment)).items():
        try:
            await verb()
        except NotLive:
            continue
        raise AssertionError(f"{name} of a client that was not started did its work")
    await settled_to(box.client, box.mailbox, waiting=0, held=0)


@CASES.case(50)
async def the_same_verbs_work_on_a_live_client(harness: Harness) -> None:
    """The control of the two cases above."""
    box = await seat(harness)
    await box.send("a")
    assert box.client.connected
    for verb in _verbs(box).values():
        await verb()


@CASES.case(50)
async def stopping_ends_a_fetch_at_once(harness: Harness) -> None:
    box = await seat(harness)
    fetch = asyncio.create_task(box.fetch())
    await pass_time(harness.quiet_s)
    began = now()
    await box.client.stop()
    with contextlib.suppress(NotLive):
        assert await fetch == []
    assert now() - began < SOON_S / 2
    peer = await seat(harness, mailbox=box.mailbox)
    await peer.send("a")
    assert bodies(await peer.fetch()) == ["a"]


@CASES.case(50)
async def starting_and_stopping_twice_is_once(harness: Harness) -> None:
    box = await seat(harness)
    await box.client.start()
    await box.send("a")
    assert bodies(await box.fetch()) == ["a"]
    await box.client.stop()
    await box.client.stop()
    assert not box.client.connected


@CASES.case(50)
async def the_store_of_a_stopped_client_does_not_answer(harness: Harness) -> None:
    client, key = await harness.client(), harness.name()
    await client.store.put(LEDGER, key, b"x")
    await client.stop()
    async with raises(StoreUnavailable):
        await client.store.get(LEDGER, key)
    peer = await harness.client()
    found = await peer.store.get(LEDGER, key)
    assert found is not None and found.value == b"x"


def _verbs(box: Seat) -> dict[str, Callable[[], Awaitable[object]]]:
    """Each verb that asks the broker; `settle` needs a delivery and is its case's own."""
    client, mailbox = box.client, box.mailbox
    return {
        "ensure": lambda: client.ensure(mailbox),
        "attach": lambda: client.attach(mailbox, epoch=2),
        "fetch": lambda: client.fetch(box.attachment, 1, 0.05),
        "list": lambda: client.list(mailbox.topic),
        "reclaim": lambda: client.reclaim(mailbox),
        "outstanding": lambda: client.outstanding(mailbox),
        "sweep": lambda: client.sweep(mailbox),
        "publish": lambda: client.publish(mailbox.topic, b"x", message_id=f"{mailbox}-verb"),
        "subscribe": lambda: client.subscribe(topics.EVENTS, lambda topic, body: None),
        "serve": lambda: client.serve(topics.question("verb"), _echo),
        "ask": lambda: client.ask(topics.question("verb"), b"x", wanted=1, within_s=1.0),
        "recent": lambda: client.recent(topics.EVENTS, 1),
        "dead_letters": lambda: client.dead_letters(1),
        "dead_letter": lambda: client.dead_letter("999999999"),
        "drop_dead_letter": lambda: client.drop_dead_letter("999999999"),
        "delete": lambda: client.delete(mailbox),
    }


async def _echo(question: bytes) -> bytes:
    return question
