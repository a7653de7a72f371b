"""A completion over JetStream: lost answers, takeovers in between, and a leader that is stale."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from actors.ports import Unavailable
from actors.tenure import Fence, Fenced
from crewlet.broker import kv, names
from crewlet.broker.api import Api
from crewlet.broker.completion import AT, BATCH, COMMIT, Completion
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.kv import JetStreamStore
from crewlet.broker.topology import ABILITIES
from crewlet.coordination.store import LEASES, LEDGER, Conflict, Store
from crewlet.errors import BrokerRefused, StoreUnavailable
from tests.broker.real import connected, freeze, serving

Then = Callable[[], Awaitable[object]]

SIZES = pytest.mark.parametrize("keys", ["a", "abc"], ids=["one row", "three rows"])


class _Unsure(Api):
    """The first writes of rows get no answer; `sent`: but they arrive. Then `then` happens."""

    def __init__(self, real: Api, lose: int, *, sent: bool, then: Then | None = None) -> None:
        self._real = real
        self._wire = real.wire
        self._lose = lose
        self._sent = sent
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
        if self._lose == 0:
            return await self._real.ask(subject, body, headers=headers, wait_s=wait_s)
        self._lose -= 1
        if self._sent:
            await self._real.ask(subject, body, headers=headers, wait_s=wait_s)
        if self._then is not None:
            await self._then()
        raise Unavailable("the answer was lost")


def unsure(client: JetStreamBroker, lose: int, **how: Any) -> JetStreamStore:
    return JetStreamStore(_Unsure(client._api, lose, **how), client._topology.ensure_bucket)


async def taken(store: Store) -> Fence:
    return Fence("seat:dev", 1, await store.put(LEASES, "seat.dev", b"ours"))


def rows(keys: str, value: bytes = b"x") -> dict[str, bytes]:
    return dict.fromkeys(keys, value)


async def recorded(store: Store) -> dict[str, bytes]:
    return {entry.key: entry.value for entry in await store.list(LEDGER)}


@SIZES
@pytest.mark.parametrize("lose", [1, 2])
def test_a_lost_answer_is_found_to_be_one_s_own(keys: str, lose: int, tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            fence = await taken(client.store)
            await unsure(client, lose, sent=True).record(LEDGER, rows(keys), fence)
            assert await recorded(client.store) == rows(keys)
            with pytest.raises(Conflict):
                await client.store.record(LEDGER, rows(keys, b"y"), fence)
            assert await recorded(client.store) == rows(keys)

    asyncio.run(asyncio.wait_for(play(), 30))


@SIZES
def test_a_lost_question_is_asked_again(keys: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            fence = await taken(client.store)
            await unsure(client, 2, sent=False).record(LEDGER, rows(keys), fence)
            assert await recorded(client.store) == rows(keys)

    asyncio.run(asyncio.wait_for(play(), 30))


@SIZES
def test_a_completion_that_came_before_the_takeover_counts(keys: str, tmp_path: Path) -> None:
    """Its answer was lost, and the seat changed hands before it could ask again."""

    async def play() -> None:
        async with connected(tmp_path) as client:
            fence = await taken(client.store)
            take = lambda: taken(client.store)  # noqa: E731
            await unsure(client, 1, sent=True, then=take).record(LEDGER, rows(keys), fence)
            assert await recorded(client.store) == rows(keys)

    asyncio.run(asyncio.wait_for(play(), 30))


@SIZES
def test_one_that_did_not_is_fenced(keys: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            fence = await taken(client.store)
            take = lambda: taken(client.store)  # noqa: E731
            with pytest.raises(Fenced):
                await unsure(client, 1, sent=False, then=take).record(LEDGER, rows(keys), fence)
            assert await recorded(client.store) == {}

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_row_that_a_stale_leader_does_not_show_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def blind(self: Completion, wait_s: float) -> bool:
        return False

    async def play() -> None:
        async with connected(tmp_path) as client:
            store = client.store
            fence = await taken(store)
            await store.record(LEDGER, rows("a"), fence)
            await store.record(LEDGER, rows("bc"), fence)
            monkeypatch.setattr(Completion, "_glance", blind)
            for key in "abc":
                with pytest.raises(Conflict) as conflict:
                    await store.record(LEDGER, rows(key, b"y"), fence)
                assert conflict.value.keys == (key,)
            await store.record(LEDGER, rows("d"), fence)
            assert await recorded(store) == rows("abcd")

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_hundred_seats_complete_at_once(tmp_path: Path) -> None:
    """More batches than a server keeps open for a stream: each comes through."""

    async def play() -> None:
        async with connected(tmp_path) as client:
            store = client.store

            async def complete(n: int) -> None:
                revision = await store.create(LEASES, f"seat.s{n}", b"ours")
                fence = Fence(f"seat:s{n}", 1, revision)
                await store.record(LEDGER, {f"s{n}.{k}": b"x" for k in range(3)}, fence)
                await store.record(LEDGER, {f"s{n}.last": b"x"}, fence)

            await asyncio.gather(*(complete(n) for n in range(100)))
            assert len(await store.list(LEDGER)) == 400

    asyncio.run(asyncio.wait_for(play(), 60))


@SIZES
def test_a_frozen_broker_is_neither_yes_nor_no(
    keys: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kv, "WAIT_S", 0.6)
    monkeypatch.setattr(kv, "TRY_S", 0.2)

    async def play() -> None:
        async with serving(tmp_path) as real:
            client = real.client()
            await client.start()
            fence = await taken(client.store)
            assert real.server.pid is not None
            await freeze(real.server.pid)
            try:
                with pytest.raises(StoreUnavailable):
                    await client.store.record(LEDGER, rows(keys), fence)
            finally:
                await real.restart()
            there = await recorded(client.store)
            assert there in ({}, rows(keys))
            if not there:
                await client.store.record(LEDGER, rows(keys), fence)
            assert await recorded(client.store) == rows(keys)
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_batch_that_lost_a_part_stores_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            fence = await taken(client.store)
            client._wire.send(names.keys_of(LEDGER, "a"), b"x", headers={BATCH: "torn", AT: "1"})
            assert await recorded(client.store) == {}
            await client.store.record(LEDGER, rows("ab"), fence)
            client._wire.send(
                names.keys_of(LEDGER, "c"), b"x", headers={BATCH: "torn", AT: "3", COMMIT: "1"}
            )
            assert await recorded(client.store) == rows("ab")

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.parametrize("ability", ABILITIES)
def test_a_log_that_could_not_fence_is_refused(ability: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path, memory=True) as real:
            client = real.client()
            await client.start()
            config = client._topology.bucket(LEDGER)
            assert config == client._topology.bucket(LEASES)
            await client._api.call(f"STREAM.DELETE.{config['name']}")
            await client._api.call(f"STREAM.CREATE.{config['name']}", config | {ability: False})
            with pytest.raises(BrokerRefused, match=ability):
                await real.client("n2").start()
            await client.stop()

    asyncio.run(asyncio.wait_for(play(), 30))


def test_the_fence_of_a_batch_is_in_no_bucket(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            fence = await taken(client.store)
            await client.store.record(LEDGER, rows("abc"), fence)
            keys = {entry.key for entry in await client.store.list(LEASES)}
            assert keys == {"seat.dev"}
            assert set(await recorded(client.store)) == set("abc")

    asyncio.run(asyncio.wait_for(play(), 30))
