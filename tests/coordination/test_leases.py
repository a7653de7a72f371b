"""The fleet's rows in their bucket: one holder each, whatever a peer wrote, whoever is silent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from actors.ports import Unavailable
from actors.tenure import Lease, LeaseStore, Lost
from crewlet.broker.memory import MemoryBroker
from crewlet.coordination.leases import BucketLeases
from crewlet.coordination.store import LEASES, Store, lease_key
from crewlet.testing import run_virtual
from tests.coordination.stores import both, run


def lease(resource: str, *, node: str = "n1", epoch: int = 1, **more: object) -> Lease:
    row = Lease(resource=resource, owner=f"{node}/1", node=node, epoch=epoch, session=1)
    return msgspec.structs.replace(row, **more)


@both
@pytest.mark.certifies(269, 270)
def test_a_row_is_written_read_and_listed_as_it_was(kind: str, tmp_path: Path) -> None:
    async def play(store: Store, peer: Store) -> None:
        leases: LeaseStore = BucketLeases(store)
        theirs: LeaseStore = BucketLeases(peer)
        assert await leases.read("seat:dev") is None
        about = {"roles": "api,worker", "leaving": "no"}
        rows = [
            await leases.write(one)
            for one in (
                lease("node:n-1", about=about),
                lease("seat:dev", preferred="n2", released=True),
                lease("worker:router", node="n2"),
                lease("seat:a", epoch=7),
            )
        ]
        assert all(row.revision for row in rows)
        assert await theirs.read("seat:dev") == rows[1]
        assert await theirs.read("node:n-1") == rows[0]
        assert list(await theirs.list()) == [rows[3], rows[1], rows[2], rows[0]]

    run(kind, tmp_path, play)


@both
@pytest.mark.certifies(270, 271)
def test_a_write_needs_the_last_revision(kind: str, tmp_path: Path) -> None:
    async def play(store: Store, peer: Store) -> None:
        leases, theirs = BucketLeases(store), BucketLeases(peer)
        first = await leases.write(lease("seat:dev"))
        with pytest.raises(Lost):
            await theirs.write(lease("seat:dev", node="n2"))
        second = await theirs.write(msgspec.structs.replace(first, node="n2", epoch=2))
        assert second.revision > first.revision
        with pytest.raises(Lost):
            await leases.write(msgspec.structs.replace(first, preferred="n3"))
        assert await leases.read("seat:dev") == second

    run(kind, tmp_path, play)


@both
@pytest.mark.certifies(271)
def test_of_many_claimers_one_holds_and_epochs_only_rise(kind: str, tmp_path: Path) -> None:
    async def play(store: Store, peer: Store) -> None:
        granted: list[tuple[int, str]] = []

        async def claim(at: int) -> None:
            leases, name = BucketLeases((store, peer)[at % 2]), f"n{at}"
            for _ in range(5):
                row = await leases.read("seat:dev")
                if row is None:
                    wanted = lease("seat:dev", node=name)
                else:
                    wanted = msgspec.structs.replace(row, node=name, epoch=row.epoch + 1)
                try:
                    won = await leases.write(wanted)
                except Lost:
                    continue
                granted.append((won.epoch, name))

        await asyncio.gather(*(claim(at) for at in range(8)))
        epochs = [epoch for epoch, _ in granted]
        assert sorted(epochs) == list(range(1, len(epochs) + 1))
        last = await BucketLeases(store).read("seat:dev")
        assert last is not None and (last.epoch, last.node) == max(granted)

    run(kind, tmp_path, play)


@both
def test_a_watch_hears_rows_then_each_write(kind: str, tmp_path: Path) -> None:
    async def play(store: Store, peer: Store) -> None:
        leases, theirs = BucketLeases(store), BucketLeases(peer)
        heard: list[Lease] = []
        rows = [await theirs.write(lease(one)) for one in ("node:n1", "seat:dev", "seat:a")]
        watch = await leases.watch(heard.append)
        assert heard == rows
        rows.append(await theirs.write(rows[1]))
        rows.append(await theirs.write(lease("worker:router")))
        async with asyncio.timeout(10):
            while len(heard) < len(rows):
                await asyncio.sleep(0.01)
        assert heard == rows
        await watch.close()

    run(kind, tmp_path, play)


@both
def test_what_a_peer_wrote_that_nobody_can_read_is_passed_over(kind: str, tmp_path: Path) -> None:
    async def play(store: Store, peer: Store) -> None:
        leases = BucketLeases(store)
        heard: list[Lease] = []
        for n, value in enumerate((b"", b"\xff", b"[]", b"{}", b'{"owner": 1}', b"[" * 9999)):
            await peer.put(LEASES, f"seat.bad-{n}", value)
            assert await leases.read(f"seat:bad-{n}") is None
        await peer.put(LEASES, "planet.mars", b"{}")
        await peer.put(LEASES, "seat", b"{}")
        await peer.put(LEASES, "seat.a.b", b"{}")
        good = await leases.write(lease("seat:good"))
        newer = msgspec.json.decode((await store.get(LEASES, "seat.good")).value)  # type: ignore[union-attr]
        await peer.put(LEASES, "seat.newer", msgspec.json.encode(newer | {"colour": "blue"}))
        watch = await leases.watch(heard.append)
        assert [one.resource for one in heard] == ["seat:good", "seat:newer"]
        assert [one.resource for one in await leases.list()] == ["seat:good", "seat:newer"]
        with pytest.raises(Lost):  # a row that cannot be read is somebody's
            await leases.write(lease("seat:bad-0"))
        await peer.delete(LEASES, "seat.good")
        after = await leases.write(lease("seat:after"))
        async with asyncio.timeout(10):
            while after not in heard:
                await asyncio.sleep(0.01)
        gone = heard[2]
        assert heard[0] == good and (gone.resource, gone.owner) == ("seat:good", "")
        assert heard[3:] == [after]
        await watch.close()

    run(kind, tmp_path, play)


@pytest.mark.certifies(270)
def test_a_store_that_is_silent_is_neither_yes_nor_no() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        client = broker.client("n1")
        await client.start()
        leases = BucketLeases(client.store)
        row = await leases.write(lease("seat:dev"))
        broker.shelves.down = True
        with pytest.raises(Unavailable):
            await leases.read("seat:dev")
        with pytest.raises(Unavailable):
            await leases.list()
        with pytest.raises(Unavailable):
            await leases.write(row)
        with pytest.raises(Unavailable):
            await leases.watch(lambda _: None)
        broker.shelves.down = False
        assert await leases.read("seat:dev") == row

    run_virtual(main)


@pytest.mark.parametrize(
    "resource",
    ["", "seat", "seat:", "seat:a.b", "seat:a b", "seat:*", "seat:a:b", "node:ä", "planet:mars"]
    + ["seat:" + "x" * 200],
)
def test_what_can_be_no_key_is_refused_in_words(resource: str) -> None:
    async def main() -> None:
        client = MemoryBroker().client("n1")
        await client.start()
        leases = BucketLeases(client.store)
        with pytest.raises(ValueError, match=r"leased|no key"):
            await leases.write(lease(resource))
        with pytest.raises(ValueError):
            await leases.read(resource)

    run_virtual(main)


def test_keys_are_those_of_the_design() -> None:
    assert lease_key("seat:dev") == "seat.dev"
    assert lease_key("node:host-1_a") == "node.host-1_a"
    assert lease_key("worker:router") == "worker.router"
