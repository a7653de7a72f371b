"""Cases of the coordination store: yes, no, and never a guess."""

from __future__ import annotations

import asyncio
from typing import Final

from crewlet.coordination.store import CLAIMS, LEDGER, Bucket, Conflict, Store
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import Harness, pass_time
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


@CASES.case()
async def what_was_created_is_there(harness: Harness) -> None:
    store, key = await _store(harness), harness.name()
    assert await store.get(LEDGER, key) is None
    revision = await store.create(LEDGER, key, b"\x00one\xff")
    entry = await store.get(LEDGER, key)
    assert entry is not None
    assert (entry.key, entry.value, entry.revision) == (key, b"\x00one\xff", revision)


@CASES.case()
async def creating_what_is_there_is_a_conflict(harness: Harness) -> None:
    store, key = await _store(harness), harness.name()
    revision = await store.create(LEDGER, key, b"one")
    async with raises(Conflict):
        await store.create(LEDGER, key, b"two")
    assert await _value(store, LEDGER, key) == (b"one", revision)


@CASES.case(271)
async def an_update_needs_the_last_revision(harness: Harness) -> None:
    store, key = await _store(harness), harness.name()
    first = await store.create(LEDGER, key, b"one")
    second = await store.update(LEDGER, key, b"two", first)
    assert second > first
    async with raises(Conflict):
        await store.update(LEDGER, key, b"three", first)
    async with raises(Conflict):
        await store.update(LEDGER, key, b"three", second + 1000)
    assert await _value(store, LEDGER, key) == (b"two", second)


@CASES.case()
async def an_update_of_nothing_is_a_conflict(harness: Harness) -> None:
    store, key = await _store(harness), harness.name()
    async with raises(Conflict):
        await store.update(LEDGER, key, b"one", 1)
    assert await store.get(LEDGER, key) is None
    await store.update(LEDGER, key, b"two", await store.create(LEDGER, key, b"one"))


@CASES.case()
async def put_writes_whatever_is_there(harness: Harness) -> None:
    store, key = await _store(harness), harness.name()
    first = await store.put(LEDGER, key, b"one")
    second = await store.put(LEDGER, key, b"")
    assert second > first
    assert await _value(store, LEDGER, key) == (b"", second)
    assert await store.update(LEDGER, key, b"three", second) > second


@CASES.case()
async def a_deleted_key_is_free_again(harness: Harness) -> None:
    store, key = await _store(harness), harness.name()
    await store.delete(LEDGER, key)
    first = await store.create(LEDGER, key, b"one")
    await store.delete(LEDGER, key)
    assert await store.get(LEDGER, key) is None
    assert await store.list(LEDGER, key) == []
    async with raises(Conflict):
        await store.update(LEDGER, key, b"two", first)
    await store.delete(LEDGER, key)
    again = await store.create(LEDGER, key, b"two")
    assert again > first
    assert await _value(store, LEDGER, key) == (b"two", again)


@CASES.case(271)
async def of_racing_writers_one_wins(harness: Harness) -> None:
    key = harness.name()
    stores = [await _store(harness) for _ in range(2)] * 8
    created = await asyncio.gather(
        *(s.create(LEDGER, key, b"%d" % n) for n, s in enumerate(stores)), return_exceptions=True
    )
    (revision,) = [one for one in created if isinstance(one, int)]
    assert sum(isinstance(one, Conflict) for one in created) == len(stores) - 1
    updated = await asyncio.gather(
        *(s.update(LEDGER, key, b"%d" % n, revision) for n, s in enumerate(stores)),
        return_exceptions=True,
    )
    (last,) = [one for one in updated if isinstance(one, int)]
    assert sum(isinstance(one, Conflict) for one in updated) == len(stores) - 1
    value, seen = await _value(stores[0], LEDGER, key)
    assert (value, seen) == (b"%d" % updated.index(last), last)


@CASES.case(269)
async def list_is_complete_and_by_key(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    assert await store.list(LEDGER, f"{name}.") == []
    keys = [f"{name}.{n:03}" for n in range(300)]
    await asyncio.gather(*(store.put(LEDGER, key, key.encode()) for key in reversed(keys)))
    await store.put(LEDGER, f"{name}-sibling.000", b"x")
    await store.delete(LEDGER, keys[7])
    listed = await store.list(LEDGER, f"{name}.")
    assert [entry.key for entry in listed] == [key for key in keys if key != keys[7]]
    assert all(entry.value == entry.key.encode() for entry in listed)
    assert [entry.key for entry in await store.list(LEDGER, f"{name}.29")] == keys[290:]
    everything = {entry.key for entry in await store.list(LEDGER)}
    assert everything >= {keys[0], f"{name}-sibling.000"}
    entry = listed[0]
    await store.update(LEDGER, entry.key, b"new", entry.revision)


@CASES.case()
async def buckets_share_no_keys(harness: Harness) -> None:
    store, key = await _store(harness), harness.name()
    await store.create(LEDGER, key, b"ledger")
    assert await store.get(CLAIMS, key) is None
    await store.create(CLAIMS, key, b"claims")
    await store.delete(CLAIMS, key)
    assert (await _value(store, LEDGER, key))[0] == b"ledger"


@CASES.case()
async def a_value_outlives_its_last_write_by_the_age(harness: Harness) -> None:
    store, key = await _store(harness), harness.name()
    aged = Bucket(f"aged-{harness.name()}", age_s=2.0)
    await store.create(aged, key, b"one")
    await store.create(LEDGER, key, b"kept")
    await pass_time(1.2)
    revision = await store.put(aged, key, b"two")
    await pass_time(1.2)
    assert await _value(store, aged, key) == (b"two", revision)
    await pass_time(0.8 + max(1.0, harness.slack_s))
    assert await store.get(aged, key) is None
    assert await store.list(aged) == []
    async with raises(Conflict):
        await store.update(aged, key, b"three", revision)
    await store.create(aged, key, b"four")
    assert (await _value(store, LEDGER, key))[0] == b"kept"


@CASES.case(needs="virtual_time")
async def a_claim_lasts_five_minutes(harness: Harness) -> None:
    store, key = await _store(harness), harness.name()
    await store.create(CLAIMS, key, b"one")
    await pass_time(299)
    async with raises(Conflict):
        await store.create(CLAIMS, key, b"two")
    await pass_time(2)
    await store.create(CLAIMS, key, b"two")


@CASES.case()
async def a_bad_key_is_refused_by_every_verb(harness: Harness) -> None:
    store, good = await _store(harness), harness.name()
    for bad in ("", "a..b", ".a", "a.", "a b", "a*", "a.>", "a/b", "ä", "x" * 201):
        async with raises(ValueError):
            await store.get(LEDGER, bad)
        async with raises(ValueError):
            await store.create(LEDGER, bad, b"x")
        async with raises(ValueError):
            await store.update(LEDGER, bad, b"x", 1)
        async with raises(ValueError):
            await store.put(LEDGER, bad, b"x")
        async with raises(ValueError):
            await store.delete(LEDGER, bad)
    await store.create(LEDGER, f"{good}.A_b-c=.9", b"x")


@CASES.case(269)
async def what_one_node_wrote_every_node_reads(harness: Harness) -> None:
    one, two = await _store(harness), await _store(harness)
    key = harness.name()
    for value in (b"a", b"b", b"c"):
        revision = await one.put(LEDGER, key, value)
        assert await _value(two, LEDGER, key) == (value, revision)


async def _store(harness: Harness) -> Store:
    return (await harness.client()).store


async def _value(store: Store, bucket: Bucket, key: str) -> tuple[bytes, int]:
    entry = await store.get(bucket, key)
    assert entry is not None, f"{key} is not there"
    return entry.value, entry.revision
