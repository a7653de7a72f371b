"""A watch of the twin over an outage: what JetStream's does after a reconnect."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.broker.memory import MemoryBroker
from crewlet.broker.memory_client import MemoryClient
from crewlet.coordination.store import LEASES, Entry
from crewlet.errors import StoreUnavailable
from crewlet.testing import run_virtual


async def started(broker: MemoryBroker, name: str = "n1") -> MemoryClient:
    client = broker.client(name)
    await client.start()
    return client


def said(heard: list[Entry]) -> list[tuple[str, bytes]]:
    return [(entry.key, entry.value) for entry in heard]


@pytest.mark.parametrize("whole", [True, False])
def test_after_an_outage_everything_is_heard_again(whole: bool) -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client, heard = await started(broker), list[Entry]()
        await client.store.put(LEASES, "a", b"1")
        await client.store.put(LEASES, "b", b"2")
        watch = await client.store.watch(LEASES, "", heard.append)
        await client.store.delete(LEASES, "b")
        await client.store.put(LEASES, "a", b"3")  # on its way when the broker goes
        _down(broker, whole, True)
        await asyncio.sleep(10)
        assert said(heard) == [("a", b"1"), ("b", b"2"), ("b", b"")]
        heard.clear()
        _down(broker, whole, False)
        await asyncio.sleep(0.1)
        assert [(one.key, one.value, one.gone) for one in heard] == [
            ("b", b"", True),
            ("a", b"3", False),
        ]
        await watch.close()

    run_virtual(main)


def _down(broker: MemoryBroker, whole: bool, down: bool) -> None:
    if whole:
        broker.down = down
    else:
        broker.shelves.down = down


def test_a_node_that_died_hears_nothing_also_after_it_came_back() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client, peer = await started(broker), await started(broker, "n2")
        heard, control = list[Entry](), list[Entry]()
        await client.store.watch(LEASES, "", heard.append)
        await peer.store.watch(LEASES, "", control.append)
        client.crash()
        await peer.store.put(LEASES, "a", b"1")
        await client.start()
        await peer.store.put(LEASES, "a", b"2")
        broker.restart()
        await asyncio.sleep(1)
        assert heard == []
        assert len(control) == 3

    run_virtual(main)


def test_a_watch_that_could_not_begin_hears_nothing_later() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client, heard = await started(broker), list[Entry]()
        await client.store.put(LEASES, "a", b"1")
        asyncio.get_running_loop().call_soon(_down, broker, False, True)
        with pytest.raises(StoreUnavailable):
            await client.store.watch(LEASES, "", heard.append)
        broker.shelves.down = False
        await client.store.put(LEASES, "a", b"2")
        await asyncio.sleep(1)
        assert heard == []

    run_virtual(main)
