"""Pulls: nothing is stranded, whatever ends a fetch, and the server may die under it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import pytest

from actors.delivery import Delivery, Done, HandBack, Retry
from actors.ports import STANDS_S, MailboxState, NoMailbox, Unavailable
from actors.strays import LOOK_S_A_SECOND
from actors.tenure import WATCHED_S
from crewlet.broker import jetstream, pull
from crewlet.broker.jetstream import JetStreamBroker
from tests.broker.real import (
    Real,
    bodies,
    box,
    connected,
    done,
    eventually,
    freeze,
    send,
    serving,
    until,
)


async def _state(client: JetStreamBroker) -> MailboxState:
    (state,) = await client.list(box().topic)
    return state


async def _empty(client: JetStreamBroker) -> bool:
    state = await _state(client)
    return (state.waiting, state.in_flight) == (0, 0)


@pytest.mark.certifies(34, 35)
def test_a_fetch_cancelled_at_any_moment_strands_nothing(tmp_path: Path) -> None:
    number = 600

    async def play() -> None:
        async with connected(tmp_path) as client:
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            dice, taken = random.Random(7), []
            sending = asyncio.create_task(
                send(client, box(), *(f"{at:04}" for at in range(number)))
            )
            while len(taken) < number:
                fetch = asyncio.create_task(client.fetch(attachment, 20, 5.0))
                await asyncio.wait({fetch}, timeout=dice.uniform(0, 0.004))
                if fetch.cancel():
                    await asyncio.wait({fetch})
                if not fetch.cancelled():
                    got = fetch.result()
                    await client.settle(done(list(got)))
                    taken += bodies(list(got))
                elif sending.done() and len(taken) < number:
                    got = await client.fetch(attachment, 20, 0.0)
                    await client.settle(done(list(got)))
                    taken += bodies(list(got))
            await sending
            assert sorted(taken) == [f"{at:04}" for at in range(number)]
            await eventually(lambda: _empty(client))

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(34, 40)
def test_recalls_that_race_mail_keep_every_message_and_the_order(tmp_path: Path) -> None:
    number = 400

    async def play() -> None:
        async with connected(tmp_path) as client:
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            dice, taken, recalled = random.Random(3), [], 0
            sending = asyncio.create_task(
                send(client, box(), *(f"{at:04}" for at in range(number)))
            )
            while len(taken) < number:
                fetch = asyncio.create_task(client.fetch(attachment, 20, 5.0))
                await asyncio.wait({fetch}, timeout=dice.uniform(0, 0.004))
                recalled += not fetch.done()
                await client.recall(attachment)
                got = await fetch
                await client.settle(done(list(got)))
                taken += bodies(list(got))
            await sending
            assert taken == [f"{at:04}" for at in range(number)]
            assert recalled, "no recall met a fetch: the case shows nothing"
            await eventually(lambda: _empty(client))

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(34)
def test_a_parked_fetch_survives_the_server_and_is_served_at_once(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            client, peer = real.client("a"), real.client("b")
            await client.start()
            await peer.start()
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            fetch = asyncio.create_task(client.fetch(attachment, 20, 25.0))
            await asyncio.sleep(0)
            await real.restart()
            await until(lambda: client.connected and peer.connected)
            began = time.monotonic()
            await send(peer, box(), "after")
            (delivery,) = await fetch
            assert (delivery.body, delivery.count) == (b"after", 1)
            assert time.monotonic() - began < 2.0
            await client.stop()
            await peer.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


async def _publish_all(client: JetStreamBroker, number: int) -> int:
    """Each under its own id until the broker took it; how often it did not say."""
    unknown = 0
    for at in range(number):
        while True:
            try:
                await client.publish(box().topic, b"%04d" % at, message_id=f"id-{at}")
                break
            except Unavailable:
                unknown += 1
                await asyncio.sleep(0.01)
    return unknown


@pytest.mark.certifies(4, 6, 36)
def test_kill_9_of_the_server_under_load_loses_nothing(tmp_path: Path) -> None:
    number = 1500

    async def play() -> None:
        async with serving(tmp_path) as real:
            producer, worker = real.client("p"), Exclusive(real)
            await producer.start()
            await worker.client.start()
            await worker.client.ensure(box())
            producing = asyncio.create_task(_publish_all(producer, number))
            working = asyncio.create_task(worker.work(number))
            for _ in range(3):
                enough = len(worker.taken) + 100
                await until(lambda at=enough: len(worker.taken) > at or working.done())
                await real.restart()
                await until(lambda: producer.connected and worker.client.connected)
            await producing
            await asyncio.wait_for(working, 20)
            assert set(worker.taken) == {b"%04d" % at for at in range(number)}
            await eventually(lambda: _empty(worker.client))
            await producer.stop()
            await worker.client.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


class Exclusive:
    """A worker that is the only one ever served, as the owner of an embedded broker is."""

    def __init__(self, real: Real) -> None:
        self.client = JetStreamBroker(real.server.address, exclusive=True)
        self.taken: list[bytes] = []

    async def work(self, number: int) -> None:
        attachment = await self.client.attach(box(), 1)
        while len(set(self.taken)) < number:
            for delivery in await self.client.fetch(attachment, 20, 2.0):
                self.taken.append(delivery.body)
                await self._told(delivery)

    async def _told(self, delivery: Delivery) -> None:
        while True:
            try:
                return await self.client.settle([(delivery, Done())])
            except Unavailable:
                await asyncio.sleep(0.01)


@pytest.mark.certifies(39, 40)
def test_hand_backs_are_confirmed_before_the_next_fetch(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            await send(client, box(), *"abcdef")
            for turn in range(1, 15):
                got = await client.fetch(attachment, 3, 5.0)
                assert bodies(list(got)) == ["a", "b", "c"]
                assert {delivery.count for delivery in got} == {turn}
                await client.settle([(delivery, HandBack()) for delivery in got])

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(36)
def test_a_server_that_is_frozen_is_unavailable_and_serves_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull, "GRACE_S", 0.3)
    monkeypatch.setattr(pull, "BARRIER_S", 0.3)

    async def play() -> None:
        async with serving(tmp_path) as real:
            client = real.client()
            await client.start()
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            pid = real.server.pid
            assert pid is not None
            await freeze(pid)
            try:
                began = time.monotonic()
                with pytest.raises(Unavailable):
                    await client.publish(box().topic, b"x", message_id="x", within_s=1.0)
                assert await client.fetch(attachment, 1, 0.05) == []
                assert time.monotonic() - began < 4
            finally:
                os.kill(pid, signal.SIGCONT)
            await client.publish(box().topic, b"x", message_id="x", within_s=1.0)
            got = [await client.fetch(attachment, 5, 5.0) for _ in range(1)]
            assert bodies(list(got[0])) == ["x"]
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 40))


@pytest.mark.certifies(42)
def test_a_mailbox_deleted_under_a_fetch_is_no_mailbox(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path, memory=True) as real:
            client, peer = real.client("a"), real.client("b")
            await client.start()
            await peer.start()
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            fetch = asyncio.create_task(client.fetch(attachment, 1, 10.0))
            await asyncio.sleep(0.05)  # let it park; earlier it is refused all the same
            await peer.delete(box())
            with pytest.raises(NoMailbox):
                await fetch
            with pytest.raises(NoMailbox):
                await client.fetch(attachment, 1, 2.0)
            await client.stop()
            await peer.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(37)
def test_a_retry_whose_word_was_lost_comes_back_on_time(tmp_path: Path) -> None:
    """The nak is written to a connection that is already dead."""

    async def play() -> None:
        async with serving(tmp_path) as real:
            worker = Exclusive(real)
            client = worker.client
            await client.start()
            await client.ensure(box())
            attachment = await client.attach(box(), 1)
            await send(client, box(), "a")
            (delivery,) = await client.fetch(attachment, 1, 5.0)
            pid = real.server.pid
            assert pid is not None
            await freeze(pid)  # what is written now is never read
            await client.settle([(delivery, Retry(0.2))])
            await real.restart()
            (again,) = await client.fetch(attachment, 1, 10.0)
            assert (again.body, again.position) == (b"a", delivery.position)
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(34)
def test_no_pull_stands_for_longer_than_a_dead_holders_mail_is_looked_for() -> None:
    """Else what it is given last is in nobody's hands until the ack window ends."""
    assert pull.SHARED_EXPIRY_S[1] + pull.TOGETHER_S <= STANDS_S
    assert STANDS_S * (1 + LOOK_S_A_SECOND) <= WATCHED_S


def test_pulls_that_end_together_are_sent_anew_in_one_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What idle seats cost: a write for each was a third of it (docs/benchmarks.md)."""
    monkeypatch.setattr(jetstream, "SHARED_EXPIRY_S", (0.2, 0.25))

    async def play() -> None:
        async with connected(tmp_path) as client:
            boxes = [box(f"s{at}") for at in range(40)]
            pulls = []
            for one in boxes:
                await client.ensure(one)
                pulls.append(await client.attach(one, 1))
            fetches = [asyncio.create_task(client.fetch(pull, 5, 30.0)) for pull in pulls]
            await until(lambda: all(pull._number >= 2 for pull in pulls))
            before = sum(pull._number for pull in pulls)
            transport, writes = client._wire._client._transport, []
            plain = transport.writelines
            monkeypatch.setattr(
                transport, "writelines", lambda data: (writes.append(len(data)), plain(data))
            )
            await until(lambda: all(pull._number >= 6 for pull in pulls))
            sent = sum(pull._number for pull in pulls) - before
            assert sum(writes) >= sent > 5 * len(writes)
            await send(client, boxes[7], "mail")
            (delivery,) = await fetches[7]
            assert delivery.body == b"mail"

    asyncio.run(asyncio.wait_for(play(), 30))
