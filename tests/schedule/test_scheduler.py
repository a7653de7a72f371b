"""The duty: claims before tasks, tasks before records, and everything once, whoever dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crewlet import topics
from crewlet.coordination.store import FIRES, SCHEDULES
from crewlet.events.schedules import ScheduledTask
from crewlet.schedule.fires import LONGEST_WINDOW
from crewlet.schedule.memory import Memories
from crewlet.schedule.scheduler import PEEK_S, TICK_S
from tests.schedule.schedule_bench import Worker, World, in_a_world

NINE = """
name: Company T
roles:
  - {name: Dev, handle: dev, schedules: [{name: daily, cron: 0 9 * * *, text: Look around}]}
"""

UNIT = """
name: Company T
units:
  - name: Desk
    lead: ops
    schedules:
      - {name: all, cron: 0 9 * * *, text: Look around}
      - {name: one, cron: 5 9 * * *, text: Count, target: lead, timeout_s: 600}
    roles:
      - {name: Boss, handle: boss, kind: human}
      - {name: Dev, handle: dev}
      - {name: Ops, handle: ops}
"""


def at(hour: int, minute: int = 0, second: int = 0, *, day: int = 2) -> datetime:
    return datetime(2026, 6, day, hour, minute, second, tzinfo=UTC)


@pytest.mark.certifies(122, 156)
def test_a_fire_is_a_task_and_a_record_of_one_trace() -> None:
    async def play(world: World) -> None:
        await world.worker("a").begin()
        await world.until(at(9, 1))
        [task] = await world.tasks()
        [(record, fired)] = await world.records()
        body = task.read(ScheduledTask)
        assert (task.type, task.source, body.text) == ("task_assigned", "scheduler", "Look around")
        assert (body.label, body.timeout_s) == ("2026-06-02T09:00+00:00", 180)
        assert (fired.outcome, fired.label, fired.agent_role) == ("fired", body.label, "dev")
        assert fired.task_id == task.id and fired.late_s <= TICK_S
        assert record.trace.trace_id == task.trace.trace_id != ""
        assert task.trace.parent_span_id == record.trace.span_id

    in_a_world(NINE, at(8, 59, 33), play)


@pytest.mark.certifies(122)
def test_of_a_unit_it_is_for_each_agent_or_for_the_lead() -> None:
    async def play(world: World) -> None:
        await world.worker("a").begin()
        await world.until(at(9, 10))
        assert len(await world.tasks("dev")) == 1
        first, second = await world.tasks("ops")
        assert [e.value("subject", str, "") for e in (first, second)] == ["all", "one"]
        assert second.value("timeout_s", float, 0) == 600
        assert await world.outcomes() == {"fired": 3}

    in_a_world(UNIT, at(8, 59), play)


@pytest.mark.field("C07")
def test_a_new_company_is_seen_within_a_second() -> None:
    async def play(world: World) -> None:
        await world.worker("a", PEEK_S).begin()
        await world.until(at(8, 59, 58))
        world.apply(NINE.replace("Look around", "Look again"))
        await world.until(at(8, 59, 58, day=3))
        world.apply(NINE.replace("0 9", "0 10"))
        await world.until(at(9, 30, day=3))
        texts = [task.read(ScheduledTask).text for task in await world.tasks()]
        assert texts == ["Look again"], "and none for the nine o'clock that was taken away"

    in_a_world(NINE, at(8, 59), play)


class Failing:
    """A store or a queue that stops at the n-th call of a verb, before or after it is done."""

    def __init__(self, worker: Worker, n: int, *, after: bool) -> None:
        self.left = n
        self._after = after
        self._worker = worker
        store = worker.scheduler._claims._store
        for owner, verb in (
            (store, "create"),
            (store, "update"),
            (worker.queue, "publish"),
        ):
            self._wrap(owner, verb)

    def _wrap(self, owner: Any, verb: str) -> None:
        real: Callable[..., Any] = getattr(owner, verb)

        async def wrapped(*args: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self._after:
                await self._die()
            result = await real(*args, **named)
            if self.left == 0 and self._after:
                await self._die()
            return result

        setattr(owner, verb, wrapped)

    async def _die(self) -> None:
        """Like a process that is killed here: nothing further is done in its name."""
        self._worker.kill()
        await asyncio.sleep(0)
        raise AssertionError("it went on")


@pytest.mark.certifies(122)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", range(1, 13))
def test_a_node_killed_at_any_step_leaves_nothing_out_and_nothing_twice(
    step: int, after: bool
) -> None:
    """Of a look with two targets; the steps are its writes."""

    async def play(world: World) -> None:
        first, second = world.worker("a"), world.worker("b")
        await first.begin()
        await asyncio.sleep(2)
        Failing(first, step, after=after)
        await world.until(at(9, 1))
        first.kill()
        await second.begin()
        await world.until(at(9, 30))
        for handle in ("dev", "ops"):
            labels = await world.labels(handle)
            assert labels.count("2026-06-02T09:00+00:00") == 1, handle
        assert await world.outcomes() == {"fired": 3}
        rows = await second.client.store.list(FIRES)
        assert len(rows) == 3 and all(b'"done":true' in row.value for row in rows)

    in_a_world(UNIT, at(8, 59, 31), play)


@pytest.mark.parametrize("seed", range(3))
def test_two_that_both_think_that_it_is_theirs_fire_once(seed: int) -> None:
    async def play(world: World) -> None:
        for name in ("a", "b"):
            await world.worker(name).begin()
        await world.until(at(9, 10, day=4))
        for handle, count in (("dev", 3), ("ops", 6)):
            labels = await world.labels(handle)
            assert len(labels) == count
        assert await world.outcomes() == {"fired": 9}

    in_a_world(UNIT, at(8, 59, 31), play, seed=seed)


def test_a_duty_that_is_lost_skips_its_look_and_forgets_nothing() -> None:
    async def play(world: World) -> None:
        worker = world.worker("a")
        await worker.begin()
        await world.until(at(8, 59, 50))
        worker.lose()
        await world.until(at(9, 1))
        assert not await worker.client.store.list(FIRES)
        worker.kill()
        await worker.begin()
        await world.until(at(9, 2))
        assert await world.labels() == ["2026-06-02T09:00+00:00"]

    in_a_world(NINE, at(8, 59), play)


def test_a_store_that_is_away_delays_a_fire_and_loses_none() -> None:
    async def play(world: World) -> None:
        await world.worker("a").begin()
        await world.until(at(8, 59, 50))
        world.broker.shelves.down = True
        await world.until(at(9, 20))
        world.broker.shelves.down = False
        await world.until(at(9, 21))
        [(_, fired)] = await world.records()
        assert fired.outcome == "fired" and 1190 < fired.late_s < 1220
        assert await world.labels() == ["2026-06-02T09:00+00:00"]

    in_a_world(NINE, at(8, 59), play)


def test_a_seat_without_a_mailbox_is_said_and_holds_up_nobody() -> None:
    async def play(world: World) -> None:
        worker = world.worker("a")
        await worker.begin()
        await worker.client.delete(topics.inbox_of("dev"))
        await world.until(at(9, 30))
        assert len(await world.tasks("ops")) == 2
        assert await world.outcomes() == {"fired": 2, "no_mailbox": 1}
        assert await remembered(worker) == {
            "all": ("no_mailbox", ("dev",)),
            "one": ("fired", ()),
        }

    in_a_world(UNIT, at(8, 59), play)


@pytest.mark.certifies(122)
def test_whoever_finishes_the_look_of_another_knows_who_had_no_mailbox() -> None:
    """Dead after the claims are done, and before what became of them is remembered."""

    async def play(world: World) -> None:
        first, second = world.worker("a"), world.worker("b")
        await first.begin()
        await first.client.delete(topics.inbox_of("dev"))
        await asyncio.sleep(2)
        update, writes = first.scheduler._memories._store.update, []

        async def dies(bucket: Any, *args: Any) -> Any:
            if bucket == SCHEDULES:
                writes.append(bucket)
                first.kill()
                await asyncio.sleep(0)
            return await update(bucket, *args)

        first.scheduler._memories._store.update = dies  # type: ignore[method-assign]
        await world.until(at(9, 0, 30))
        assert writes
        await second.begin()
        await second.client.ensure(topics.inbox_of("dev"))
        await world.until(at(9, 1))
        assert (await remembered(second))["all"] == ("no_mailbox", ("dev",))
        assert await world.tasks() == []

    in_a_world(UNIT, at(8, 59), play)


async def remembered(worker: Worker) -> dict[str, tuple[str, tuple[str, ...]]]:
    """What the fleet knows of each schedule's last time."""
    memory = await Memories(worker.client.store).read()
    assert memory is not None
    known = {entry.name: memory.entries[entry.id] for entry in worker.world.company.schedules}
    return {name: (one.outcome, one.without) for name, one in known.items()}


@pytest.mark.field("C22")
def test_a_claim_is_kept_for_longer_than_any_look_goes_back() -> None:
    """Two days, and a fire may be two hours late. What lies further back than that is never fired
    for, claim or no claim."""
    assert FIRES.age_s == 2 * 24 * 3600
    assert timedelta(seconds=FIRES.age_s) >= 12 * LONGEST_WINDOW


@pytest.mark.field("C22")
def test_one_task_a_day_however_often_a_node_restarts_within_the_window() -> None:
    async def play(world: World) -> None:
        a, b = world.worker("a"), world.worker("b")
        await a.begin()
        await world.until(at(9, 10))
        await b.begin()
        await world.until(at(9, 20))
        a.kill()
        await world.until(at(9, 30))
        await world.worker("a").begin()
        await world.until(at(10, 55))
        b.kill()
        await world.worker("a").begin()
        await world.worker("b").begin()
        await world.until(at(12))
        assert await world.labels() == ["2026-06-02T09:00+00:00"]
        assert await world.outcomes() == {"fired": 1}

    in_a_world(NINE, at(8), play)


@pytest.mark.field("C22")
@pytest.mark.parametrize("behind", [-70, 70])
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_clock_that_is_off_changes_neither_the_count_nor_the_label(
    behind: int, first: str
) -> None:
    """Both look at once, and each takes over from the other; the row's age passes as well."""

    async def play(world: World) -> None:
        workers = {name: world.worker(name) for name in ("a", "b")}
        workers["b"].clock.off = timedelta(seconds=-behind)
        await workers[first].begin()
        for name in ("a", "b"):
            if name != first:
                await workers[name].begin()
        await world.until(at(9, 0, 40))
        workers[first].kill()
        await world.until(at(9, 5, day=3))
        await workers[first].begin()
        await world.until(at(8, day=5))
        labels = await world.labels()
        assert labels == [f"2026-06-0{day}T09:00+00:00" for day in (2, 3, 4)]
        assert await world.outcomes() == {"fired": 3}

    in_a_world(NINE, at(8), play)
