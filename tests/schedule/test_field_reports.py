"""C07, C14 and C41 as people told them, on schedulers of a fleet in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from crewlet.coordination.store import SCHEDULES
from tests.schedule.schedule_bench import World, in_a_world

COMPANY = """
name: Company T
scheduling: {timezone: %s}
roles:
  - name: Dev
    handle: dev
    schedules: [%s]
  - name: Ops
    handle: ops
    schedules: [%s]
"""

BERLIN = ZoneInfo("Europe/Berlin")


def company(dev: str = "", ops: str = "", zone: str = "Europe/Berlin") -> str:
    return COMPANY % (zone, dev, ops)


def entry(cron: str, name: str = "daily") -> str:
    return f"{{name: {name}, cron: '{cron}', text: Look around}}"


def berlin(day: int, hour: int, minute: int = 0) -> datetime:
    """2026-06-04 is a Thursday."""
    return datetime(2026, 6, day, hour, minute, tzinfo=BERLIN)


# -- C07 ----------------------------------------------------------------------------------


@pytest.mark.field("C07")
def test_an_entry_that_was_moved_does_not_make_up_for_what_it_never_was() -> None:
    async def play(world: World) -> None:
        worker = world.worker("a")
        await worker.begin()
        await world.until(berlin(4, 12))
        world.apply(company(entry("30 11 * * *")))
        await world.until(berlin(4, 12, 31))
        worker.kill()
        await world.worker("a").begin()
        await world.until(berlin(5, 0))
        records = await world.records()
        assert [body.label for _, body in records] == ["2026-06-04T09:00+02:00"]

    in_a_world(company(entry("0 9 * * *")), berlin(4, 8), play)


@pytest.mark.field("C07")
@pytest.mark.parametrize(
    ("then", "fires"),
    [
        ("", 0),
        (entry("30 11 * * MON-FRI", "weekdays"), 0),
        (entry("30 11 * * *", "another"), 1),
    ],
    ids=["removed", "excluded", "renamed"],
)
def test_on_a_saturday_it_is_what_it_is_at_that_moment(then: str, fires: int) -> None:
    async def play(world: World) -> None:
        worker = world.worker("a")
        await worker.begin()
        await world.until(berlin(6, 10))
        world.apply(company(entry("30 11 * * *", "renamed")))
        await world.until(berlin(6, 11))
        world.apply(company(then))
        await world.until(berlin(6, 11, 40))
        world.apply(company(entry("30 11 * * *", "renamed again") if then else ""))
        worker.kill()
        await world.worker("b").begin()
        await world.until(berlin(7, 0))
        on_saturday = [each for each in await world.records() if "06-06" in each[1].label]
        assert [body.outcome for _, body in on_saturday] == ["fired"] * fires
        tasks = await world.tasks()
        assert len(tasks) == 1 + fires
        traces = {event.trace.trace_id for event, _ in await world.records()}
        assert {task.trace.trace_id for task in tasks} == traces

    in_a_world(company(entry("30 11 * * *")), berlin(5, 8), play)


@pytest.mark.field("C07")
def test_a_rename_in_the_moment_of_a_fire_is_not_a_second_one() -> None:
    async def play(world: World) -> None:
        first, second = world.worker("a"), world.worker("b")
        await first.begin()
        await world.until(berlin(4, 9, 1))
        world.apply(company(entry("0 9 * * *", "renamed")))
        await second.begin()
        await world.until(berlin(4, 9, 2))
        first.kill()
        await world.worker("c").begin()
        await world.until(berlin(4, 12))
        assert await world.outcomes() == {"fired": 1} and len(await world.tasks()) == 1

    in_a_world(company(entry("0 9 * * *")), berlin(4, 8), play)


@pytest.mark.field("C07")
def test_since_when_an_entry_stands_outlives_every_process() -> None:
    async def play(world: World) -> None:
        first, second = world.worker("a"), world.worker("b")
        await first.begin()
        await world.until(berlin(4, 12))
        first.kill()
        await world.until(berlin(4, 12, 30))
        world.apply(company(entry("0 10 * * *")))
        await second.begin()
        await world.until(berlin(4, 13))
        row = await second.client.store.get(SCHEDULES, "scheduler")
        assert row is not None and b"2026-06-04T10:30" in row.value
        second.kill()
        await world.until(berlin(5, 11))
        await world.worker("a").begin()
        await world.until(berlin(5, 12))
        labels = [body.label for _, body in await world.records()]
        assert labels == ["2026-06-04T09:00+02:00", "2026-06-05T10:00+02:00"]

    in_a_world(company(entry("0 9 * * *")), berlin(4, 8), play)


# -- C14 ----------------------------------------------------------------------------------

FOUR = ", ".join(
    entry(cron, name)
    for name, cron in {
        "two": "30 2 * * *",
        "one": "30 1 * * *",
        "half": "*/30 * * * *",
        "day": "0 0 * * *",
    }.items()
)


@pytest.mark.field("C14")
@pytest.mark.parametrize(
    ("zone", "first", "half_hours"),
    [
        ("America/New_York", (2026, 3, 7), (48, 46, 48)),
        ("America/New_York", (2026, 10, 31), (48, 50, 48)),
        ("Australia/Lord_Howe", (2026, 4, 4), (48, 49, 48)),
        ("Australia/Lord_Howe", (2026, 10, 3), (48, 47, 48)),
        ("Asia/Kolkata", (2026, 3, 7), (48, 48, 48)),
    ],
    ids=["spring", "autumn", "half-hour-back", "half-hour-on", "none"],
)
def test_three_days_around_a_change_and_a_node_killed_in_the_changed_hour(
    zone: str, first: tuple[int, int, int], half_hours: tuple[int, int, int]
) -> None:
    start = datetime(*first, tzinfo=ZoneInfo(zone))
    days = [start.date() + timedelta(days=each) for each in range(3)]

    async def play(world: World) -> None:
        a, b = world.worker("a"), world.worker("b")
        await a.begin()
        await world.until(start + timedelta(days=1, hours=1, minutes=15))
        a.kill()
        await asyncio.sleep(25)  # until its lease has run out
        await b.begin()
        await world.until(start + timedelta(days=3) - timedelta(seconds=1))
        b.kill()
        fired = Counter[tuple[str, str]]()
        half: list[datetime] = []
        for _, body in await world.records():
            assert body.outcome == "fired"
            fired[body.schedule, body.label[:10]] += 1
            if body.schedule == "half":
                half.append(datetime.fromisoformat(body.label))
        for day, count in zip(days, half_hours, strict=True):
            assert fired["half", str(day)] == count
            for name in ("one", "two", "day"):
                assert fired[name, str(day)] == 1, (name, day)
        utc = sorted(moment.astimezone(UTC) for moment in half)
        assert {b - a for a, b in pairwise(utc)} == {timedelta(minutes=30)}
        labels = await world.labels("dev")
        assert len(labels) == sum(fired.values()) == sum(half_hours) + 9

    in_a_world(company(FOUR, zone=zone), start - timedelta(seconds=35), play)


# -- C41 ----------------------------------------------------------------------------------

SLEEPER = company(entry("0 9 * * *"), entry("* * * * *", "minutely"))


@pytest.mark.field("C41")
@pytest.mark.parametrize("other", [False, True], ids=["alone", "with another node"])
def test_a_node_that_slept_makes_up_for_one_fire_each(other: bool) -> None:
    """Stopped half a minute before nine for four minutes; its lease runs out meanwhile."""

    async def play(world: World) -> None:
        sleeper = world.worker("a")
        await sleeper.begin()
        await world.until(berlin(4, 8, 59) + timedelta(seconds=30))
        sleeper.kill()  # nothing of it runs
        if other:
            await asyncio.sleep(22)
            await world.worker("b").begin()
        await world.until(berlin(4, 9, 3) + timedelta(seconds=30))
        sleeper.lose()
        await world.until(berlin(4, 9, 3) + timedelta(seconds=40))
        if not other:
            await sleeper.begin()
        await world.until(berlin(4, 9, 10) + timedelta(seconds=30))
        records = [body for _, body in await world.records()]
        daily = [body for body in records if body.schedule == "daily"]
        assert [body.outcome for body in daily] == ["fired"]
        assert (daily[0].late_s < 12) is other
        minutely = [body for body in records if body.schedule == "minutely"]
        skipped = [body for body in minutely if body.outcome == "skipped_catchup"]
        assert [body.missed for body in skipped] == ([] if other else [3])
        labels = await world.labels("ops")
        assert len(labels) == len(set(labels)) == len(minutely) - len(skipped)
        assert "2026-06-04T09:03+02:00" in labels and "2026-06-04T09:10+02:00" in labels

    in_a_world(SLEEPER, berlin(4, 8, 57) + timedelta(seconds=3), play)


@pytest.mark.field("C41")
def test_a_clock_that_jumps_forward_and_back_fires_no_label_twice() -> None:
    async def play(world: World) -> None:
        worker = world.worker("a")
        await worker.begin()
        await world.until(berlin(4, 8, 30))
        worker.clock.off = timedelta(hours=2)
        await world.until(berlin(4, 8, 40))
        worker.clock.off = timedelta(0)
        await world.until(berlin(4, 11, 30))
        records = [body for _, body in await world.records()]
        daily = [body for body in records if body.schedule == "daily"]
        assert [(body.outcome, body.label[11:16]) for body in daily] == [("fired", "09:00")]
        labels = await world.labels("ops")
        assert len(labels) == len(set(labels)), "no label twice"
        minutes = {berlin(4, 8, 41) + timedelta(minutes=n) for n in range(160)}
        assert {minute.isoformat(timespec="minutes") for minute in minutes} <= set(labels)

    in_a_world(SLEEPER, berlin(4, 8, 20), play)


@pytest.mark.field("C41")
def test_a_clock_that_was_a_year_ahead_stops_nothing_for_a_year() -> None:
    async def play(world: World) -> None:
        worker = world.worker("a")
        worker.clock.off = timedelta(days=365)
        await worker.begin()
        await asyncio.sleep(60)
        worker.kill()
        successor = world.worker("b")
        await successor.begin()
        await world.until(berlin(4, 9, 5))
        assert "2026-06-04T09:00+02:00" in await world.labels("dev")

    in_a_world(SLEEPER, berlin(4, 8, 55), play)
