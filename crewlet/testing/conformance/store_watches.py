"""Cases of watching the coordination store: what is heard is a prefix of what was written."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Final

from crewlet.coordination.store import LEASES, LEDGER, Entry, Store
from crewlet.errors import StoreUnavailable
from crewlet.testing.conformance.case import Table
from crewlet.testing.conformance.harness import SOON_S, Harness, now
from crewlet.testing.conformance.raising import raises

CASES: Final = Table()


class Ear:
    """What a watch has told, in order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def hear(self, entry: Entry) -> None:
        self.entries.append(entry)

    @property
    def said(self) -> list[tuple[str, bytes]]:
        return [(entry.key.rpartition(".")[2], entry.value) for entry in self.entries]

    def has(self, key: str, value: bytes) -> bool:
        return key in self.last and self.last[key].value == value

    @property
    def last(self) -> dict[str, Entry]:
        return {entry.key: entry for entry in self.entries}


@CASES.case()
async def a_watch_hears_what_is_there_then_what_is_written(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    for key, value in (("b", b"1"), ("a", b"2"), ("b", b"3")):
        await store.put(LEASES, f"{name}.{key}", value)
    ear = Ear()
    watch = await store.watch(LEASES, f"{name}.", ear.hear)
    assert ear.said == [("a", b"2"), ("b", b"3")]
    revision = await store.put(LEASES, f"{name}.c", b"4")
    await store.update(LEASES, f"{name}.c", b"5", revision)
    await store.delete(LEASES, f"{name}.a")
    await _until(lambda: len(ear.entries) == 5)
    assert ear.said[2:] == [("c", b"4"), ("c", b"5"), ("a", b"")]
    assert [entry.gone for entry in ear.entries] == [False] * 4 + [True]
    revisions = [entry.revision for entry in ear.entries]
    assert revisions == sorted(set(revisions))
    assert revisions[2] == revision
    await watch.close()


@CASES.case()
async def a_watch_hears_of_no_key_that_was_deleted_before(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    await store.put(LEASES, f"{name}.a", b"1")
    await store.delete(LEASES, f"{name}.a")
    await store.put(LEASES, f"{name}.b", b"2")
    ear = Ear()
    watch = await store.watch(LEASES, f"{name}.", ear.hear)
    assert ear.said == [("b", b"2")]
    await store.create(LEASES, f"{name}.a", b"3")
    await _until(lambda: len(ear.entries) == 2)
    assert ear.said == [("b", b"2"), ("a", b"3")]
    await watch.close()


@CASES.case()
async def a_watch_of_nothing_begins_at_once(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    ear = Ear()
    watch = await store.watch(LEASES, f"{name}.", ear.hear)
    assert ear.entries == []
    await store.put(LEASES, f"{name}.a", b"")
    await _until(lambda: ear.said == [("a", b"")])
    await watch.close()


@CASES.case()
async def a_watch_hears_its_bucket_and_its_prefix_only(harness: Harness) -> None:
    store, name = await _store(harness), harness.name()
    ear, half, whole = Ear(), Ear(), Ear()
    watches = [
        await store.watch(LEASES, f"{name}.", ear.hear),
        await store.watch(LEASES, f"{name}.o", half.hear),
        await store.watch(LEASES, "", whole.hear),
    ]
    await store.put(LEDGER, f"{name}.one", b"ledger")
    await store.put(LEASES, f"{name}-sibling.one", b"1")
    await store.put(LEASES, f"{name}.two", b"2")
    await store.put(LEASES, f"{name}.one", b"3")
    await _until(lambda: len(ear.entries) == 2 and len(half.entries) == 1)
    assert ear.said == [("two", b"2"), ("one", b"3")]
    assert half.said == [("one", b"3")]
    await _until(lambda: f"{name}.one" in whole.last)
    heard = [entry for entry in whole.entries if entry.key.startswith(name)]
    assert [entry.value for entry in heard] == [b"1", b"2", b"3"]
    for watch in watches:
        await watch.close()


@CASES.case()
async def a_closed_watch_hears_nothing(harness: Harness) -> None:
    store, peer, name = await _store(harness), await _store(harness), harness.name()
    closed, control = Ear(), Ear()
    watch = await store.watch(LEASES, f"{name}.", closed.hear)
    other = await peer.watch(LEASES, f"{name}.", control.hear)
    await store.put(LEASES, f"{name}.a", b"1")
    await _until(lambda: len(closed.entries) == 1 and len(control.entries) == 1)
    writing = asyncio.ensure_future(store.put(LEASES, f"{name}.b", b"2"))
    await watch.close()
    heard = len(closed.entries)
    await writing
    await watch.close()
    await store.put(LEASES, f"{name}.c", b"3")
    await _until(lambda: len(control.entries) == 3)
    assert len(closed.entries) == heard
    await other.close()


@CASES.case()
async def every_watcher_hears_the_same(harness: Harness) -> None:
    stores = [await _store(harness) for _ in range(3)]
    name, ears = harness.name(), [Ear() for _ in range(3)]
    watches = [
        await store.watch(LEASES, f"{name}.", ear.hear)
        for store, ear in zip(stores, ears, strict=True)
    ]
    await asyncio.gather(
        *(stores[n % 3].put(LEASES, f"{name}.{n % 7}", b"%d" % n) for n in range(60))
    )
    await _until(lambda: all(len(ear.entries) == 60 for ear in ears))
    assert ears[0].entries == ears[1].entries == ears[2].entries
    for watch in watches:
        await watch.close()


class View:
    """Sessions and seats as a node sees them: a seat is taken under a session."""

    def __init__(self) -> None:
        self.sessions: dict[str, int] = {}
        self.seats: dict[str, int] = {}
        self.begun = False

    def hear(self, entry: Entry) -> None:
        kind, node = entry.key.rsplit(".", 2)[1:]
        {"session": self.sessions, "seat": self.seats}[kind][node] = int(entry.value)
        assert not self.begun or self.right, f"{entry.key} before its session"

    @property
    def right(self) -> bool:
        return all(self.sessions.get(node, -1) >= taken for node, taken in self.seats.items())


@CASES.case()
async def whoever_hears_of_a_write_has_heard_of_those_before(harness: Harness) -> None:
    stores, name = [await _store(harness) for _ in range(2)], harness.name()
    views, nodes, rounds = [View() for _ in range(4)], 6, 12
    wrong: list[str] = []

    async def work(store: Store, node: str) -> None:
        for round in range(rounds):
            await store.put(LEASES, f"{name}.session.{node}", b"%d" % round)
            await store.put(LEASES, f"{name}.seat.{node}", b"%d" % round)

    def told(view: View, entry: Entry) -> None:
        try:
            view.hear(entry)
        except AssertionError as error:
            wrong.append(str(error))

    working = asyncio.gather(*(work(stores[n % 2], f"n{n}") for n in range(nodes)))
    watches = []
    for n, view in enumerate(views):
        await asyncio.sleep(0.005)
        hear = functools.partial(told, view)
        watches.append(await stores[n % 2].watch(LEASES, f"{name}.", hear))
        view.begun = True
        assert view.right
    await working
    last = {f"n{n}": rounds - 1 for n in range(nodes)}
    await _until(lambda: all(view.seats == last for view in views))
    assert not wrong
    for watch in watches:
        await watch.close()


@CASES.case()
async def a_listener_that_raises_is_told_the_next_all_the_same(harness: Harness) -> None:
    store, name, ear = await _store(harness), harness.name(), Ear()

    def hear(entry: Entry) -> None:
        ear.hear(entry)
        raise RuntimeError("a listener's own fault")

    await store.put(LEASES, f"{name}.a", b"1")
    watch = await store.watch(LEASES, f"{name}.", hear)
    await store.put(LEASES, f"{name}.b", b"2")
    await _until(lambda: ear.said == [("a", b"1"), ("b", b"2")])
    await watch.close()


@CASES.case()
async def a_client_that_leaves_hears_nothing_and_watches_nothing(harness: Harness) -> None:
    leaving, staying, name = await harness.client(), await _store(harness), harness.name()
    left, control = Ear(), Ear()
    watch = await leaving.store.watch(LEASES, f"{name}.", left.hear)
    other = await staying.watch(LEASES, f"{name}.", control.hear)
    await leaving.stop()
    await staying.put(LEASES, f"{name}.a", b"1")
    await _until(lambda: len(control.entries) == 1)
    await asyncio.sleep(harness.quiet_s)
    assert left.entries == []
    await watch.close()
    async with raises(StoreUnavailable):
        await leaving.store.watch(LEASES, f"{name}.", left.hear)
    await other.close()


@CASES.case()
async def a_prefix_that_no_key_has_is_refused(harness: Harness) -> None:
    store = await _store(harness)
    for bad in ("a..b", ".a", "*", ">", "a b", "a.>"):
        async with raises(ValueError):
            await store.watch(LEASES, bad, Ear().hear)


@CASES.case(needs="restart")
async def a_watch_outlives_the_broker_and_hears_what_it_missed(harness: Harness) -> None:
    store, peer, name, ear = await _store(harness), await _store(harness), harness.name(), Ear()
    for key in ("a", "b", "c"):
        await store.put(LEASES, f"{name}.{key}", b"1")
    watch = await store.watch(LEASES, f"{name}.", ear.hear)
    for value in (b"once", b"twice"):
        await harness.restart()
        await _written(peer, f"{name}.a", value)
        await _written(peer, f"{name}.d", value)
        await _until(functools.partial(ear.has, f"{name}.d", value))
        assert ear.last[f"{name}.a"].value == value
        assert ear.last[f"{name}.b"].value == b"1"
    await peer.delete(LEASES, f"{name}.b")
    await _until(lambda: ear.last[f"{name}.b"].gone)
    _assert_never_older(ear)
    await watch.close()


def _assert_never_older(ear: Ear) -> None:
    last: dict[str, int] = {}
    for entry in ear.entries:
        assert entry.revision >= last.get(entry.key, 0), f"{entry.key} became older"
        last[entry.key] = entry.revision


async def _written(store: Store, key: str, value: bytes) -> None:
    """Put it, however long the broker takes to come back."""
    deadline = now() + SOON_S
    while True:
        try:
            await store.put(LEASES, key, value)
            return
        except StoreUnavailable:
            assert now() < deadline, "the store did not come back"
            await asyncio.sleep(0.05)


async def _until(holds: Callable[[], bool]) -> None:
    deadline = now() + SOON_S
    while not holds():
        assert now() < deadline, "it was not heard in time"
        await asyncio.sleep(0.01)


async def _store(harness: Harness) -> Store:
    return (await harness.client()).store
