"""Cases of the fenced completion: all rows or none, once, and by the holder only."""

from __future__ import annotations

import asyncio
from typing import Final

from actors.tenure import Fence, Fenced
from crewlet.coordination.store import (
    CLAIMS,
    LEASES,
    LEDGER,
    OWNERSHIP,
    Bucket,
    Conflict,
    Store,
)
from crewlet.errors import StoreUnavailable
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import Harness, pass_time
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()

WEEK_S: Final = 7 * 24 * 3600.0


@CASES.case()
async def what_was_recorded_is_there(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    fence = await _taken(store, name)
    await store.record(LEDGER, {f"{name}.a": b"one"}, fence)
    await store.record(LEDGER, {f"{name}.{n:03}": b"%d" % n for n in range(100)}, fence)
    listed = await store.list(LEDGER, f"{name}.")
    assert [entry.value for entry in listed] == [b"%d" % n for n in range(100)] + [b"one"]
    lease = await store.get(LEASES, f"seat.{name}")
    assert lease is not None and lease.revision == fence.revision


@CASES.case(271)
async def a_stale_fence_is_refused_and_nothing_is_written(harness: Harness) -> None:
    store, peer, name = await _store(harness), await _store(harness), harness.name()
    fence = await _taken(store, name)
    await store.record(LEDGER, {f"{name}.before": b"x"}, fence)
    revision = await peer.update(LEASES, f"seat.{name}", b"theirs", fence.revision)
    for rows in (["one"], ["one", "two"], ["before"], ["before", "one"]):
        async with raises(Fenced):
            await store.record(LEDGER, {f"{name}.{key}": b"late" for key in rows}, fence)
    assert await _rows(store, name) == {"before": b"x"}
    theirs = Fence(f"seat:{name}", 2, revision)
    await peer.record(LEDGER, {f"{name}.one": b"y"}, theirs)
    await peer.record(LEDGER, {f"{name}.two": b"y", f"{name}.three": b"y"}, theirs)
    assert await _rows(store, name) == dict.fromkeys(("one", "two", "three"), b"y") | {
        "before": b"x"
    }


@CASES.case()
async def a_fence_on_no_row_or_on_a_deleted_one_is_stale(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    for revision in (0, 1):
        for rows in (["a"], ["a", "b"]):
            async with raises(Fenced):
                await store.record(
                    LEDGER,
                    {f"{name}.{key}": b"x" for key in rows},
                    Fence(f"seat:{name}", 1, revision),
                )
    fence = await _taken(store, name)
    await store.record(LEDGER, {f"{name}.control": b"x"}, fence)
    await store.delete(LEASES, f"seat.{name}")
    for rows in (["a"], ["a", "b"]):
        async with raises(Fenced):
            await store.record(LEDGER, {f"{name}.{key}": b"x" for key in rows}, fence)
    assert await _rows(store, name) == {"control": b"x"}


@CASES.case()
async def rows_that_are_there_stay_and_keep_the_others_out(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    fence = await _taken(store, name)
    await store.record(LEDGER, {f"{name}.a": b"first"}, fence)
    await store.create(LEDGER, f"{name}.b", b"first")
    for rows, there in (("a", "a"), ("b", "b"), ("abc", "ab"), ("ca", "a")):
        try:
            await store.record(LEDGER, {f"{name}.{key}": b"second" for key in rows}, fence)
        except Conflict as conflict:
            assert sorted(conflict.keys) == [f"{name}.{key}" for key in there]
        else:
            raise AssertionError(f"{rows} were recorded over {there}")
    assert await _rows(store, name) == {"a": b"first", "b": b"first"}
    await store.record(LEDGER, {f"{name}.c": b"first"}, fence)
    assert (await _rows(store, name))["c"] == b"first"


@CASES.case()
async def a_row_that_was_deleted_is_recorded_again(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    fence = await _taken(store, name)
    for round in range(3):
        await store.record(LEDGER, {f"{name}.a": b"%d" % round}, fence)
        await store.record(LEDGER, {f"{name}.{key}": b"%d" % round for key in "bc"}, fence)
        assert set((await _rows(store, name)).values()) == {b"%d" % round}
        for key in "abc":
            await store.delete(LEDGER, f"{name}.{key}")
    assert await _rows(store, name) == {}


@CASES.case(271)
async def of_racing_completions_one_is_recorded(harness: Harness) -> None:
    stores, name = [await _store(harness) for _ in range(2)], harness.name()
    fence = await _taken(stores[0], name)
    for keys in ("a", "bc", "defgh"):
        tries = await asyncio.gather(
            *(
                stores[n % 2].record(LEDGER, {f"{name}.{key}": b"%d" % n for key in keys}, fence)
                for n in range(10)
            ),
            return_exceptions=True,
        )
        (winner,) = [n for n, one in enumerate(tries) if one is None]
        assert sum(isinstance(one, Conflict) for one in tries) == len(tries) - 1
        rows = await _rows(stores[0], name)
        assert {rows[key] for key in keys} == {b"%d" % winner}


@CASES.case(271)
async def nothing_is_recorded_after_the_seat_changed_hands(harness: Harness) -> None:
    """In the order of the log, whatever the order of the answers."""
    store, peer, name = await _store(harness), await _store(harness), harness.name()
    recorded = refused = 0
    for round in range(8):
        fence = await _taken(store, f"{name}-{round}")

        async def complete(n: int, fence: Fence = fence, round: int = round) -> bool:
            keys = ("a", "b")[: 1 + n % 2]
            try:
                await store.record(LEDGER, {f"{name}.{round}-{n}{k}": b"x" for k in keys}, fence)
            except Fenced:
                return False
            return True

        completing = [asyncio.ensure_future(complete(n)) for n in range(8)]
        await asyncio.sleep(0.001 * round)
        taken = await peer.update(LEASES, f"seat.{name}-{round}", b"theirs", fence.revision)
        accepted = await asyncio.gather(*completing)
        assert not await complete(99), "a completion after the takeover was accepted"
        rows = await peer.list(LEDGER, f"{name}.{round}-")
        assert all(entry.revision < taken for entry in rows)
        assert len(rows) == sum(1 + n % 2 for n, one in enumerate(accepted) if one)
        recorded += sum(accepted)
        refused += len(accepted) - sum(accepted) + 1
    assert refused
    await store.record(LEDGER, {f"{name}.control": b"x"}, await _taken(store, name))


@CASES.case()
async def one_seat_s_fence_is_none_of_another_s(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    one, two = await _taken(store, f"{name}-1"), await _taken(store, f"{name}-2")
    await store.update(LEASES, f"seat.{name}-1", b"theirs", one.revision)
    async with raises(Fenced):
        await store.record(LEDGER, {f"{name}.a": b"x"}, one)
    await store.record(LEDGER, {f"{name}.a": b"x"}, two)
    assert await _rows(store, name) == {"a": b"x"}


@CASES.case()
async def a_recorded_row_ages_and_its_lease_does_not(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    aged = Bucket(f"aged-{name}", age_s=2.0, log=OWNERSHIP)
    fence = await _taken(store, name)
    await store.record(aged, {"a": b"x"}, fence)
    await store.record(aged, {"b": b"x", "c": b"x"}, fence)
    revision = await store.put(aged, "d", b"x")
    assert [entry.key for entry in await store.list(aged)] == ["a", "b", "c", "d"]
    await pass_time(2.0 + max(1.0, harness.slack_s))
    assert await store.list(aged) == []
    async with raises(Conflict):
        await store.update(aged, "d", b"y", revision)
    await store.create(aged, "d", b"y")
    await store.record(LEDGER, {f"{name}.a": b"x"}, fence)
    assert await _rows(store, name) == {"a": b"x"}


@CASES.case(needs="virtual_time")
async def a_completion_is_known_for_a_week(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    fence = await _taken(store, name)
    await store.record(LEDGER, {f"{name}.a": b"one"}, fence)
    await pass_time(WEEK_S - 1)
    async with raises(Conflict):
        await store.record(LEDGER, {f"{name}.a": b"two"}, fence)
    await pass_time(2)
    await store.record(LEDGER, {f"{name}.a": b"two"}, fence)
    assert await _rows(store, name) == {"a": b"two"}


@CASES.case()
async def a_record_that_nothing_could_fence_is_refused(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    fence = await _taken(store, name)
    for bucket, rows, resource in (
        (CLAIMS, {"a": b"x"}, fence.resource),
        (LEDGER, {}, fence.resource),
        (LEDGER, {"a..b": b"x"}, fence.resource),
        (LEDGER, {f"{name}.a": b"x", "*": b"x"}, fence.resource),
        (LEDGER, {f"{name}.a": b"x"}, "seat:"),
        (LEDGER, {f"{name}.a": b"x"}, f"seat:{name}.>"),
        (LEDGER, {f"{name}.a": b"x"}, name),
    ):
        async with raises(ValueError):
            await store.record(bucket, rows, Fence(resource, 1, fence.revision))
    assert await _rows(store, name) == {}


@CASES.case(270)
async def a_client_that_left_records_nothing(harness: Harness) -> None:
    client, peer, name = await harness.client(), await _store(harness), harness.name()
    fence = await _taken(peer, name)
    await client.stop()
    for keys in ("a", "ab"):
        async with raises(StoreUnavailable):
            await client.store.record(LEDGER, {f"{name}.{key}": b"x" for key in keys}, fence)
    assert await _rows(peer, name) == {}
    await peer.record(LEDGER, {f"{name}.a": b"x"}, fence)


@CASES.case(needs="restart")
async def a_completion_holds_over_a_restart(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    fence = await _taken(store, name)
    await store.record(LEDGER, {f"{name}.a": b"x"}, fence)
    await store.record(LEDGER, {f"{name}.b": b"x", f"{name}.c": b"x"}, fence)
    await harness.restart()
    peer = await _store(harness)
    async with raises(Conflict):
        await peer.record(LEDGER, {f"{name}.a": b"y"}, fence)
    async with raises(Conflict):
        await peer.record(LEDGER, {f"{name}.b": b"y", f"{name}.d": b"y"}, fence)
    await peer.record(LEDGER, {f"{name}.d": b"x"}, fence)
    assert await _rows(peer, name) == dict.fromkeys("abcd", b"x")


async def _taken(store: Store, name: str) -> Fence:
    return Fence(f"seat:{name}", 1, await store.create(LEASES, f"seat.{name}", b"ours"))


async def _rows(store: Store, name: str) -> dict[str, bytes]:
    head = f"{name}."
    return {one.key.removeprefix(head): one.value for one in await store.list(LEDGER, head)}


async def _store(harness: Harness) -> Store:
    return (await harness.client()).store
