"""A watch over JetStream: it notices what it missed, and leaves nothing at the server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from crewlet.broker import names, watch
from crewlet.broker.dial import Address
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.watch import JetStreamWatch
from crewlet.coordination.store import LEASES, Entry
from crewlet.errors import StoreUnavailable
from tests.broker.real import connected, eventually, freeze, serving, until
from tests.broker.servers import Proxy

STREAM = names.bucket(names.log_of(LEASES))


async def consumers(client: JetStreamBroker) -> int:
    info = await client._api.call(f"STREAM.INFO.{STREAM}")
    return int(info["state"]["consumer_count"])


def last(heard: list[Entry]) -> dict[str, bytes]:
    return {entry.key: entry.value for entry in heard}


def never_older(heard: list[Entry]) -> bool:
    newest: dict[str, int] = {}
    for entry in heard:
        if entry.revision < newest.get(entry.key, 0):
            return False
        newest[entry.key] = entry.revision
    return True


def test_closed_it_leaves_no_consumer(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            store, listeners = client.store, list(client._wire.on_up)
            await asyncio.gather(*(store.put(LEASES, f"seat.{n}", b"x") for n in range(200)))
            for _ in range(3):
                heard: list[Entry] = []
                watching = await store.watch(LEASES, "seat.", heard.append)
                assert len(heard) == 200
                assert await consumers(client) == 1
                await watching.close()
                await watching.close()
                assert await consumers(client) == 0
                assert client._wire.on_up == listeners

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_lost_message_is_noticed_and_everything_is_heard_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            store, heard = client.store, list[Entry]()
            await store.put(LEASES, "a", b"1")
            watching = await store.watch(LEASES, "", heard.append)
            deliver = JetStreamWatch._deliver
            lost: list[bytes] = []

            def lossy(self: JetStreamWatch, one: watch._Pass, message: watch.Message) -> None:
                if message.data in (b"2", b"5") and message.data not in lost:
                    lost.append(message.data)
                else:
                    deliver(self, one, message)

            monkeypatch.setattr(JetStreamWatch, "_deliver", lossy)
            await store.put(LEASES, "b", b"2")  # the next one shows the gap
            await store.put(LEASES, "c", b"3")
            await until(lambda: last(heard) == {"a": b"1", "b": b"2", "c": b"3"})
            again = [entry.key for entry in heard[1:4]]
            assert again == ["a", "b", "c"]
            await store.put(LEASES, "d", b"5")  # nothing follows: the heartbeat shows it
            await until(lambda: last(heard).get("d") == b"5")
            assert lost == [b"2", b"5"]
            assert never_older(heard)
            await watching.close()
            assert await consumers(client) == 0

    monkeypatch.setattr(watch, "HEARTBEAT_S", 0.3)
    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_cut_connection_is_made_good(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path, memory=True) as real:
            address = real.server.address
            proxy = Proxy(address.servers[0])
            url = await proxy.start()
            far = JetStreamBroker(
                Address((url,), user=address.user, password=address.password), memory=True
            )
            near = real.client("near")
            await asyncio.gather(far.start(), near.start())
            heard: list[Entry] = []
            await near.store.put(LEASES, "kept", b"x")
            watching = await far.store.watch(LEASES, "", heard.append)
            for n in range(3):
                proxy.cut()
                await near.store.put(LEASES, "a", b"%d" % n)
                await near.store.put(LEASES, f"new-{n}", b"y")
                await until(lambda n=n: f"new-{n}" in last(heard))  # type: ignore[misc]
                assert last(heard)["a"] == b"%d" % n
            assert last(heard)["kept"] == b"x"
            assert never_older(heard)
            await eventually(lambda: _one(near))
            await watching.close()
            assert await consumers(near) == 0
            await asyncio.gather(far.stop(), near.stop())
            await proxy.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


async def _one(client: JetStreamBroker) -> bool:
    return await consumers(client) == 1


def test_silence_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends the consumer behind our back: no delivery and no heartbeat comes any more."""
    monkeypatch.setattr(watch, "HEARTBEAT_S", 0.2)
    monkeypatch.setattr(watch, "SILENCE_S", 0.5)

    async def play() -> None:
        async with connected(tmp_path) as client:
            heard: list[Entry] = []
            watching = await client.store.watch(LEASES, "", heard.append)
            names_page = await client._api.call(f"CONSUMER.NAMES.{STREAM}")
            for name in names_page["consumers"]:
                await client._api.call(f"CONSUMER.DELETE.{STREAM}.{name}")
            await client.store.put(LEASES, "a", b"1")
            await until(lambda: last(heard) == {"a": b"1"})
            await watching.close()
            assert await consumers(client) == 0

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_log_that_was_lost_is_heard_from_its_beginning(tmp_path: Path) -> None:
    """A server that keeps nothing on files comes back empty: revisions count from one again."""

    async def play() -> None:
        async with serving(tmp_path, memory=True) as real:
            client, heard = real.client(), list[Entry]()
            await client.start()
            for n in range(5):
                await client.store.put(LEASES, "a", b"%d" % n)
            watching = await client.store.watch(LEASES, "", heard.append)
            await real.restart()

            async def written() -> bool:
                try:
                    await client.store.put(LEASES, "a", b"new")
                except StoreUnavailable:
                    return False
                return True

            await eventually(written)
            await until(lambda: last(heard) == {"a": b"new"})
            await watching.close()
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 60))


def test_one_that_cannot_begin_says_so_and_hears_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "BEGIN_S", 0.5)

    async def play() -> None:
        async with serving(tmp_path) as real:
            client, heard = real.client(), list[Entry]()
            await client.start()
            await client.store.put(LEASES, "a", b"1")
            assert real.server.pid is not None
            await freeze(real.server.pid)
            try:
                with pytest.raises(StoreUnavailable):
                    await client.store.watch(LEASES, "", heard.append)
            finally:
                await real.restart()
            await client.store.put(LEASES, "a", b"2")
            assert heard == []
            assert await consumers(client) == 0
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_client_that_stops_ends_its_watch_and_the_server_its_consumer(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path, memory=True) as real:
            client, peer, heard = real.client("leaves"), real.client("stays"), list[Entry]()
            await asyncio.gather(client.start(), peer.start())
            await client.store.watch(LEASES, "", heard.append)
            await client.stop()
            await peer.store.put(LEASES, "a", b"1")
            page = await peer._api.call(f"CONSUMER.LIST.{STREAM}")
            (config,) = [one["config"] for one in page["consumers"]]
            assert config["inactive_threshold"] == watch.UNHEARD_S * watch.SECOND
            await client.start()
            await peer.store.put(LEASES, "a", b"2")
            assert heard == []
            await asyncio.gather(client.stop(), peer.stop())

    asyncio.run(asyncio.wait_for(play(), 30))
