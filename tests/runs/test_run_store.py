"""The rows of runs on the twin: any id, no write over another's, and no row lost with a reply."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from crewlet.coordination.store import RUNS, Conflict, Store
from crewlet.runs.row import Asked, Ended, Notice, Origin, Replied, Reply, Run, Told, step
from crewlet.runs.store import HoldsReply, RunStore, key_of
from crewlet.testing import MemoryBroker, run_virtual

START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def on_the_twin(play: Callable[[Store], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        client = MemoryBroker().client("n1")
        await client.start()
        await play(client.store)

    run_virtual(main)


def a_run(run_id: str, handle: str = "dev") -> Run:
    return Run(handle=handle, run_id=run_id, origin=Origin(turn_id="t1"), opened_at=START)


def notice(id: str) -> Notice:
    return Notice(id, START, "text")


@pytest.mark.parametrize("run_id", ["r1", "a.b.*.>", "é ü\u2028", "x" * 200, "dev.r1", "/"])
def test_any_id_is_a_key_of_its_seat(run_id: str) -> None:
    async def play(shelves: Store) -> None:
        store = RunStore(shelves)
        kept = await store.create(a_run(run_id))
        await store.create(a_run(run_id, "dev-2"))
        assert await store.get("dev", run_id) == kept
        assert [one.run.handle for one in await store.list("dev")] == ["dev"]
        assert len(await store.list()) == 2

    on_the_twin(play)
    assert key_of("dev", run_id).startswith("dev.")


def test_of_two_who_write_one_is_told() -> None:
    async def play(shelves: Store) -> None:
        store = RunStore(shelves)
        kept = await store.create(a_run("r1"))
        with pytest.raises(Conflict):
            await store.create(a_run("r1"))
        await store.write(kept, step(kept.run, Asked(notice("q1"))))
        with pytest.raises(Conflict):
            await store.write(kept, step(kept.run, Ended(notice("c1"))))

    on_the_twin(play)


@pytest.mark.certifies(143)
def test_a_row_with_a_reply_that_nobody_took_is_not_deleted() -> None:
    async def play(shelves: Store) -> None:
        store = RunStore(shelves)
        run = step(a_run("r1"), Asked(notice("q1")))
        kept = await store.create(step(run, Replied(Reply("m1", "{}"))))
        with pytest.raises(HoldsReply):
            await store.delete(kept)
        ended = await store.write(kept, step(kept.run, Ended(notice("c1"))))
        with pytest.raises(HoldsReply):
            await store.delete(ended)
        assert await store.get("dev", "r1") is not None

    on_the_twin(play)


def test_only_what_is_over_goes() -> None:
    async def play(shelves: Store) -> None:
        store = RunStore(shelves)
        kept = await store.create(a_run("r1"))
        with pytest.raises(ValueError, match="not over"):
            await store.delete(kept)
        run = step(step(kept.run, Ended(notice("c1"))), Told())
        await store.delete(await store.write(kept, run))
        assert await store.get("dev", "r1") is None

    on_the_twin(play)


def test_what_a_later_build_wrote_is_passed_over() -> None:
    async def play(shelves: Store) -> None:
        await shelves.put(RUNS, key_of("dev", "r0"), b'{"state": "dreaming"}')
        store = RunStore(shelves)
        await store.create(a_run("r1"))
        assert [kept.run.run_id for kept in await store.list("dev")] == ["r1"]

    on_the_twin(play)
