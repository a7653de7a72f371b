"""The store over JetStream, where it is more than the suite says: retries, races, leftovers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from actors.ports import Unavailable
from crewlet.broker import kv, names
from crewlet.broker.api import Api
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.kv import JetStreamStore
from crewlet.coordination.store import CHANNELS, CLAIMS, LEDGER, Bucket, Conflict, Entry
from crewlet.errors import StoreUnavailable
from tests.broker.real import connected, freeze, serving


class _Deaf(Api):
    """Writes whose answer is lost, as many as `lose`; between them `then` happens."""

    def __init__(self, real: Api, lose: int, then: Any = None) -> None:
        self._real = real
        self._lose = lose
        self._then = then

    async def call(self, *words: Any, **named: Any) -> dict[str, Any]:
        return await self._real.call(*words, **named)

    async def ask(
        self,
        subject: str,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        wait_s: float = 1.0,
    ) -> dict[str, Any]:
        answer = await self._real.ask(subject, body, headers=headers, wait_s=wait_s)
        if self._lose > 0:
            self._lose -= 1
            if self._then is not None:
                await self._then()
            raise Unavailable("the answer was lost")
        return answer


def _deaf(client: JetStreamBroker, lose: int, then: Any = None) -> JetStreamStore:
    return JetStreamStore(_Deaf(client._api, lose, then), client._topology.ensure_bucket)


def test_a_write_whose_answer_was_lost_runs_into_its_own_copy(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            first = await _deaf(client, 1).create(LEDGER, "k", b"a")
            second = await _deaf(client, 2).update(LEDGER, "k", b"b", first)
            assert await client.store.get(LEDGER, "k") == Entry("k", b"b", second)
            with pytest.raises(Conflict):
                await _deaf(client, 0).update(LEDGER, "k", b"c", first)

    asyncio.run(play())


def test_a_write_that_was_overwritten_before_its_answer_is_undecided(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            # The window of ids of its own stream forgets nothing in two minutes, so that the
            # repeat is answered as a duplicate; beyond the window it is neither yes nor no.
            await client.store.put(LEDGER, "k", b"theirs")
            store = client.store
            assert isinstance(store, JetStreamStore)
            with pytest.raises(StoreUnavailable):
                await store._ours(LEDGER, "k", "an id that was overwritten", True)
            with pytest.raises(Conflict):
                await store._ours(LEDGER, "k", "an id that was never sent", False)

    asyncio.run(play())


def test_of_many_creators_one_wins_also_over_a_deleted_key(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            clients = [real.client(f"n{at}") for at in range(4)]
            await asyncio.gather(*(client.start() for client in clients))
            for _ in range(3):
                tries = await asyncio.gather(
                    *(
                        client.store.create(CLAIMS, "one", b"same value")
                        for client in clients
                        for _ in range(5)
                    ),
                    return_exceptions=True,
                )
                assert sum(isinstance(one, int) for one in tries) == 1
                assert sum(isinstance(one, Conflict) for one in tries) == 19
                await clients[0].store.delete(CLAIMS, "one")
            await asyncio.gather(*(client.stop() for client in clients))

    asyncio.run(play())


def test_a_counter_under_contention_loses_no_step(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            store = client.store
            await store.create(CHANNELS, "n", b"0")

            async def step() -> None:
                while True:
                    entry = await store.get(CHANNELS, "n")
                    assert entry is not None
                    try:
                        await store.update(
                            CHANNELS, "n", b"%d" % (int(entry.value) + 1), entry.revision
                        )
                    except Conflict:
                        continue
                    return

            await asyncio.gather(*(step() for _ in range(40)))
            entry = await store.get(CHANNELS, "n")
            assert entry is not None and entry.value == b"40"

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_list_leaves_no_consumer_behind(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            store = client.store
            keys = sorted(f"seat-{at}.lease" for at in range(300))
            await asyncio.gather(*(store.put(LEDGER, key, key.encode()) for key in keys))
            await store.delete(LEDGER, keys[7])
            for _ in range(3):
                listed = await store.list(LEDGER, "seat-")
            assert [entry.key for entry in listed] == keys[:7] + keys[8:]
            assert all(entry.value == entry.key.encode() for entry in listed)
            assert [entry.key for entry in await store.list(LEDGER, "seat-29")] == [
                key for key in keys if key.startswith("seat-29")
            ]
            info = await client._api.call(f"STREAM.INFO.{names.bucket(names.log_of(LEDGER))}")
            assert info["state"]["consumer_count"] == 0

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_frozen_broker_is_neither_yes_nor_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kv, "WAIT_S", 0.4)
    monkeypatch.setattr(kv, "TRY_S", 0.2)

    async def play() -> None:
        async with serving(tmp_path) as real:
            client = real.client()
            await client.start()
            revision = await client.store.put(LEDGER, "k", b"a")
            assert real.server.pid is not None
            await freeze(real.server.pid)
            try:
                for verb in (
                    client.store.get(LEDGER, "k"),
                    client.store.create(LEDGER, "other", b"x"),
                    client.store.update(LEDGER, "k", b"b", revision),
                    client.store.list(LEDGER),
                ):
                    with pytest.raises(StoreUnavailable):
                        await verb
            finally:
                await real.restart()
            await client.store.put(LEDGER, "k", b"c")
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.parametrize("key", ["", "a..b", "a b", "*", ">", "a.>", ".a", "a.", "é", "x" * 300])
def test_a_key_that_is_none_is_refused_before_anything_is_sent(key: str) -> None:
    store = JetStreamStore(None, None)  # type: ignore[arg-type]

    async def play() -> None:
        for verb in (
            store.get(LEDGER, key),
            store.create(LEDGER, key, b""),
            store.update(LEDGER, key, b"", 1),
            store.put(LEDGER, key, b""),
            store.delete(LEDGER, key),
        ):
            with pytest.raises(ValueError):
                await verb

    asyncio.run(play())


def test_a_bucket_of_nobody_is_made_on_its_first_use(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            bucket = Bucket("extra", age_s=60.0)
            assert await client.store.get(bucket, "k") is None
            assert await client.store.create(bucket, "k", b"x") == 1

    asyncio.run(play())
