"""What only the twin has: its switches, its clock, and the same run every time."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from actors.delivery import Dead, Delivery, Done, HandBack, Mailbox, Retry
from actors.ports import NoMailbox, NotLive, Unavailable
from crewlet import topics
from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_client import MemoryClient
from crewlet.broker.memory_log import HISTORY
from crewlet.coordination.store import LEDGER, Conflict
from crewlet.errors import StoreUnavailable
from crewlet.testing import run_virtual

DEV = topics.inbox_of("dev")


def virtually(main: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await main()

    run_virtual(run)


async def started(broker: MemoryBroker, node_id: str = "n1") -> MemoryClient:
    client = broker.client(node_id)
    await client.start()
    await client.ensure(DEV)
    return client


@pytest.mark.certifies(50)
def test_down_makes_every_verb_unavailable_and_up_makes_them_work() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client = await started(broker)
        attachment = await client.attach(DEV, 1)
        await client.publish(DEV.topic, b"a", message_id="a")
        (one,) = await client.fetch(attachment, 1, 1)
        verbs: list[Callable[[], Awaitable[object]]] = [
            lambda: client.ensure(DEV),
            lambda: client.attach(DEV, 2),
            lambda: client.fetch(attachment, 1, 1),
            lambda: client.settle([(one, HandBack())]),
            lambda: client.reclaim(DEV),
            lambda: client.list(topics.AGENT),
            lambda: client.publish(DEV.topic, b"b", message_id="b"),
            lambda: client.subscribe(topics.EVENTS, lambda topic, body: None),
            lambda: client.recent(topics.EVENTS, 1),
            lambda: client.dead_letters(1),
            lambda: client.dead_letter("1"),
            lambda: client.drop_dead_letter("1"),
            lambda: client.delete(DEV),
        ]
        broker.down = True
        assert not client.connected
        for verb in verbs:
            with pytest.raises(Unavailable):
                await verb()
        await client.recall(attachment)
        await client.release(attachment)
        broker.down = False
        assert client.connected
        attachment = await client.attach(DEV, 2)
        for verb in verbs:
            await verb()

    virtually(main)


@pytest.mark.certifies(50)
def test_a_client_stopped_during_an_outage_is_not_live() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client = await started(broker)
        broker.down = True
        await client.stop()
        with pytest.raises(NotLive):
            await client.list(topics.AGENT)
        with pytest.raises(Unavailable):
            await broker.client("n2").start()

    virtually(main)


def test_a_fetch_that_waits_through_an_outage_gets_its_mail_after_it() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client = await started(broker)
        attachment = await client.attach(DEV, 1)
        await client.publish(DEV.topic, b"a", message_id="a")
        (one,) = await client.fetch(attachment, 1, 1)
        await client.settle([(one, Retry(1.0))])
        fetch = asyncio.create_task(client.fetch(attachment, 1, 30))
        await asyncio.sleep(0.5)
        broker.down = True
        await asyncio.sleep(10)
        assert not fetch.done()
        broker.down = False
        assert [d.count for d in await fetch] == [2]
        broker.down = True
        with pytest.raises(Unavailable):
            await client.fetch(attachment, 1, 1)

    virtually(main)


def test_a_fetch_whose_wait_ends_in_an_outage_says_so() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client = await started(broker)
        attachment = await client.attach(DEV, 1)
        fetch = asyncio.create_task(client.fetch(attachment, 1, 5))
        await asyncio.sleep(1)
        broker.down = True
        with pytest.raises(Unavailable):
            await fetch

    virtually(main)


def test_a_fetch_on_a_mailbox_that_is_deleted_ends() -> None:
    async def main() -> None:
        client = await started(MemoryBroker())
        attachment = await client.attach(DEV, 1)
        fetch = asyncio.create_task(client.fetch(attachment, 1, 30))
        await asyncio.sleep(1)
        await client.delete(DEV)
        with pytest.raises(NoMailbox):
            await fetch
        with pytest.raises(NoMailbox):
            await client.fetch(attachment, 1, 30)

    virtually(main)


def test_the_store_has_a_switch_of_its_own() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client = await started(broker)
        revision = await client.store.create(LEDGER, "a", b"1")
        broker.shelves.down = True
        await client.list(topics.AGENT)
        for verb in (
            lambda: client.store.get(LEDGER, "a"),
            lambda: client.store.create(LEDGER, "b", b"1"),
            lambda: client.store.update(LEDGER, "a", b"2", revision),
            lambda: client.store.put(LEDGER, "a", b"2"),
            lambda: client.store.delete(LEDGER, "a"),
            lambda: client.store.list(LEDGER),
        ):
            with pytest.raises(StoreUnavailable):
                await verb()
        broker.shelves.down = False
        assert [entry.value for entry in await client.store.list(LEDGER)] == [b"1"]
        with pytest.raises(Conflict):
            await client.store.create(LEDGER, "a", b"2")

    virtually(main)


@pytest.mark.certifies(43)
def test_at_its_limit_a_message_is_in_nobody_s_figures_until_it_is_settled() -> None:
    async def main() -> None:
        client = await started(MemoryBroker())
        attachment = await client.attach(DEV, 1)
        await client.publish(DEV.topic, b"a", message_id="a")
        last: Delivery | None = None
        while taken := await client.fetch(attachment, 1, 1):
            (last,) = taken
            await client.settle([(last, HandBack())])
        assert last is not None and last.count == 30
        assert [(s.waiting, s.in_flight) for s in await client.list(DEV.topic)] == [(0, 0)]
        assert len(await client.sweep(DEV)) == 1
        await client.settle([(last, Dead("at last"))])
        assert await client.sweep(DEV) == []
        assert [(s.waiting, s.in_flight) for s in await client.list(DEV.topic)] == [(0, 0)]
        assert [letter.deliveries for letter in await client.dead_letters(9)] == [30]

    virtually(main)


def test_windows_of_one_instant_end_in_the_order_of_positions() -> None:
    async def main() -> None:
        client = await started(MemoryBroker())
        attachment = await client.attach(DEV, 1)
        for n in range(50):
            await client.publish(DEV.topic, b"%d" % n, message_id=str(n))
        taken = await client.fetch(attachment, 50, 1)
        await client.settle([(one, Retry(5.0)) for one in reversed(taken)])
        await asyncio.sleep(6)
        back = await client.fetch(attachment, 50, 1)
        assert [one.position for one in back] == [one.position for one in taken]

    virtually(main)


def test_equal_runs_are_dated_alike() -> None:
    async def letters() -> list[object]:
        broker = MemoryBroker()
        client = await started(broker)
        attachment = await client.attach(DEV, 1)
        await client.publish(DEV.topic, b"a", message_id="a")
        await asyncio.sleep(12.5)
        (one,) = await client.fetch(attachment, 1, 1)
        await client.settle([(one, Dead("dated"))])
        return list(await client.dead_letters(1))

    assert run_virtual(letters, seed=1) == run_virtual(letters, seed=1)


def test_a_wall_clock_can_be_given() -> None:
    day = datetime(2020, 2, 29, tzinfo=UTC)

    async def main() -> None:
        client = await started(MemoryBroker(now=lambda: day))
        lost = Delivery(mailbox=DEV, body=b"", count=None, position=9, receipt="")
        await client.settle([(lost, Dead("dated"))])
        assert [letter.at for letter in await client.dead_letters(1)] == [day]

    virtually(main)


def test_a_broadcast_handler_runs_outside_the_publisher() -> None:
    current = contextvars.ContextVar("current", default="nobody")
    seen: list[tuple[str, object]] = []

    async def main() -> None:
        client = await started(MemoryBroker())
        done = asyncio.Event()

        def listen(topic: str, body: bytes) -> None:
            seen.append((current.get(), asyncio.current_task()))
            done.set()

        await client.subscribe(topics.EVENTS, listen)
        current.set("publisher")
        await client.publish(topics.event("x"), b"a", message_id="a")
        await done.wait()

    virtually(main)
    assert seen == [("nobody", None)]


def test_history_keeps_the_newest() -> None:
    async def main() -> None:
        client = await started(MemoryBroker())
        topic = topics.event("x")
        for n in range(HISTORY + 5):
            await client.publish(topic, b"%d" % n, message_id=str(n))
        kept = await client.recent(topic, HISTORY + 5)
        assert (kept[0][1], len(kept)) == (b"5", HISTORY)

    virtually(main)


def test_a_mailbox_on_a_retained_topic_begins_empty_and_its_settling_takes_no_history() -> None:
    async def main() -> None:
        client = await started(MemoryBroker())
        mailbox = Mailbox(topics.event("x"), "late")
        await client.publish(mailbox.topic, b"a", message_id="a")
        await client.ensure(mailbox)
        attachment = await client.attach(mailbox, 1)
        await client.publish(mailbox.topic, b"b", message_id="b")
        taken = await client.fetch(attachment, 5, 1)
        assert [one.body for one in taken] == [b"b"]
        await client.settle([(one, Done()) for one in taken])
        assert len(await client.recent(mailbox.topic, 5)) == 2

    virtually(main)


def test_one_fetch_at_a_time() -> None:
    async def main() -> None:
        client = await started(MemoryBroker())
        attachment = await client.attach(DEV, 1)
        fetch = asyncio.create_task(client.fetch(attachment, 1, 5))
        await asyncio.sleep(1)
        with pytest.raises(RuntimeError):
            await client.fetch(attachment, 1, 5)
        assert await fetch == []

    virtually(main)
