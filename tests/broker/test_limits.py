"""The ends of the scale: the largest message, a flood of failures, ten thousand mailboxes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from actors.delivery import Dead, Done, Mailbox, Retry
from actors.ports import TooLarge, Unavailable
from crewlet import topics
from crewlet.broker import dead_letters, server_files
from crewlet.broker.dial import HEADROOM_BYTES, RECORD_BYTES
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.topology import MAX_ACK_PENDING
from tests.broker.real import box, done, send, serving, until
from tests.broker.servers import plain_server

TIGHT = RECORD_BYTES + HEADROOM_BYTES
"""The smallest `max_payload` that an operator's server may have."""

_VIOLATION = "maximum payload exceeded"

WIDE_ID = "i" * 200
"""With its name and line ends a header of 220 bytes."""


async def _accepted(client: JetStreamBroker, size: int) -> bool:
    try:
        await client.publish(box("probe").topic, b"z" * size, message_id=f"{WIDE_ID}{size}")
    except TooLarge:
        return False
    return True


async def _largest(client: JetStreamBroker) -> int:
    """By bisection around the limit: exactly where acceptance ends."""
    await client.ensure(box("probe"))
    low, high = RECORD_BYTES - 2 * HEADROOM_BYTES, RECORD_BYTES + 2 * HEADROOM_BYTES
    assert await _accepted(client, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if await _accepted(client, middle) else (low, middle)
    return low


async def _bury_the_largest(client: JetStreamBroker) -> None:
    """What publishing takes becomes a dead letter, whatever its reason is and its id."""
    group = Mailbox(topics.inbox("d" * 63), "g" * 200)
    await client.ensure(group)
    body = b"z" * await _largest(client)
    assert len(body) == RECORD_BYTES
    for at, message_id in enumerate((WIDE_ID, "i" * 20_000)):
        await client.publish(group.topic, body, message_id=message_id)
        attachment = await client.attach(group, 1)
        (one,) = await client.fetch(attachment, 1, 10.0)
        assert one.message_id == message_id
        await client.settle([(one, Dead("é" * 200_000))])
        letters = [one for one in await client.dead_letters(at + 1) if one.mailbox == group]
        assert letters[0].body == body
        assert len(letters[0].reason.encode()) <= dead_letters.REASON_BYTES
        assert len(letters) == at + 1
        await client.release(attachment)
    (state,) = await client.list(group.topic)
    assert (state.waiting, state.in_flight) == (0, 0)


def _reconnects(client: JetStreamBroker) -> int:
    inner = client._wire._client
    assert inner is not None
    return inner.stats["reconnects"]


@pytest.mark.certifies(43, 49)
@pytest.mark.field("C01")
def test_the_largest_message_that_is_taken_always_becomes_a_dead_letter(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            client = real.client()
            await client.start()
            await _bury_the_largest(client)
            await client.ensure(box())
            with pytest.raises(TooLarge):
                await client.publish(box().topic, b"x", message_id="i" * HEADROOM_BYTES)
            assert client.connected and _reconnects(client) == 0
            log = tmp_path / server_files.LOG
            assert _VIOLATION not in log.read_text().lower()
            # The control: this is what a message that is too large would have left behind.
            client._wire._push(client._wire._current(), b"PUB a.b 99999999\r\n")
            await until(lambda: _VIOLATION in log.read_text().lower())
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(43, 49)
def test_the_same_on_the_tightest_server_that_is_taken(tmp_path: Path) -> None:
    async def play() -> None:
        config = f'max_payload: {TIGHT}\njetstream {{ store_dir: "{tmp_path}/js" }}'
        async with plain_server(tmp_path, config) as address:
            client = JetStreamBroker(address)
            await client.start()
            await _bury_the_largest(client)
            assert client.connected and _reconnects(client) == 0
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.certifies(37, 38)
def test_fifteen_hundred_that_wait_out_a_retry_stop_nobody(tmp_path: Path) -> None:
    """The server's own bound on what is out is 1,000 unless one is stated."""
    failing = 1500

    async def play() -> None:
        async with serving(tmp_path) as real:
            client = real.client()
            await client.start()
            await client.ensure(box())
            info = await client._mailboxes.info(box())
            assert info is not None and info["config"]["max_ack_pending"] == MAX_ACK_PENDING
            await _publish(client, box(), failing)
            attachment, failed = await client.attach(box(), 1), 0
            while failed < failing:
                some = await client.fetch(attachment, 100, 5.0)
                assert some, f"{failed} failing messages hold up the rest"
                await client.settle([(one, Retry(600.0)) for one in some])
                failed += len(some)
            await send(client, box(), *"abc")
            taken: list[bytes] = []
            began = time.monotonic()
            while len(taken) < 3:
                some = await client.fetch(attachment, 20, 5.0)
                await client.settle([(one, Done()) for one in some])
                taken += [one.body for one in some]
            assert taken == [b"a", b"b", b"c"]
            assert time.monotonic() - began < 2.0
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


async def _publish(client: JetStreamBroker, mailbox: Mailbox, number: int) -> None:
    for start in range(0, number, 250):
        await asyncio.gather(
            *(
                client.publish(mailbox.topic, b"%05d" % at, message_id=f"id-{at}")
                for at in range(start, min(start + 250, number))
            )
        )


@pytest.mark.certifies(22)
@pytest.mark.parametrize(
    "number", [1100, pytest.param(10_000, marks=[pytest.mark.long, pytest.mark.timeout(300)])]
)
def test_one_list_knows_every_mailbox(tmp_path: Path, number: int) -> None:
    """The server pages by 256 and names by 1,024; a stream of its own would take 1,000."""
    boxes = [topics.inbox_of(f"seat-{at:05}") for at in range(number)]

    async def play() -> None:
        async with serving(tmp_path) as real:
            client = real.client()
            await client.start()
            gate = asyncio.Semaphore(64)

            async def make(mailbox: Mailbox) -> None:
                async with gate:
                    assert await client.ensure(mailbox)

            await asyncio.gather(*map(make, boxes))
            began = time.monotonic()
            states = await client.list(topics.INBOXES)
            assert time.monotonic() - began < 10.0
            assert [state.mailbox for state in states] == boxes
            await send(client, boxes[-1], "a")
            attachment = await client.attach(boxes[-1], 1)
            await client.settle(done(list(await client.fetch(attachment, 1, 5.0))))
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 240))


@pytest.mark.certifies(42, 51)
def test_a_thousand_that_a_dead_holder_had_are_reclaimed_in_order(tmp_path: Path) -> None:
    number = 1000

    async def play() -> None:
        async with serving(tmp_path) as real:
            dead, heir = real.client("dead"), real.client("heir")
            await dead.start()
            await heir.start()
            await dead.ensure(box())
            await _publish(dead, box(), number)
            order = await _take(dead, number, 1)
            await dead.stop()
            began = time.monotonic()
            assert await heir.reclaim(box()) == number
            assert time.monotonic() - began < 5.0
            assert await _take(heir, number, 2) == order
            await heir.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


async def _take(client: JetStreamBroker, number: int, count: int) -> list[int]:
    attachment = await client.attach(box(), count)
    taken: list[int] = []
    while len(taken) < number:
        some = await client.fetch(attachment, 100, 5.0)
        assert some and {one.count for one in some} == {count}
        taken += [one.position for one in some]
    return taken


@pytest.mark.certifies(73)
def test_questions_survive_the_server_and_are_refused_at_once_without_it(tmp_path: Path) -> None:
    async def echo(question: bytes) -> bytes:
        return question

    async def never(_: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def play() -> None:
        async with serving(tmp_path) as real:
            one, two = real.client("one"), real.client("two")
            await one.start()
            await two.start()
            await one.serve("crewlet.ask.echo", echo)
            await one.serve("crewlet.ask.never", never)
            asking = asyncio.create_task(
                two.ask("crewlet.ask.never", b"q", wanted=1, within_s=30.0)
            )
            assert await two.ask("crewlet.ask.echo", b"q", wanted=1, within_s=5.0) == [b"q"]
            restarting = asyncio.create_task(real.restart())
            await until(lambda: not two.connected)
            began = time.monotonic()
            with pytest.raises(Unavailable):
                await two.ask("crewlet.ask.echo", b"q", wanted=1, within_s=30.0)
            with pytest.raises(Unavailable):
                await two.serve("crewlet.ask.echo", echo)
            with pytest.raises(Unavailable):
                await asking
            assert time.monotonic() - began < 2.0
            await restarting
            await until(lambda: one.connected and two.connected)
            answers = [
                await two.ask("crewlet.ask.echo", b"%d" % at, wanted=1, within_s=5.0)
                for at in range(3)
            ]
            assert answers == [[b"0"], [b"1"], [b"2"]]
            await one.stop()
            await two.stop()

    asyncio.run(asyncio.wait_for(play(), 30))
