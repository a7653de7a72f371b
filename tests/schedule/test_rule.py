"""When a rule comes due: the calendar, the hour that is left out, the hour that comes twice."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlet.schedule.rule import instants, label, normal, rule_fault, zones

NEW_YORK, LORD_HOWE, KOLKATA = "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"


def between(cron: str, zone: str, first: datetime, until: datetime) -> list[datetime]:
    return list(
        takewhile(lambda at: at < until, instants(cron, zone, first - timedelta(seconds=1)))
    )


def day(cron: str, zone: str, year: int, month: int, number: int) -> list[str]:
    """The labels of one day as the zone's calendar has it."""
    start = datetime(year, month, number, tzinfo=ZoneInfo(zone))
    end = (start + timedelta(days=1)).astimezone(UTC)
    return [label(at, zone) for at in between(cron, zone, start.astimezone(UTC), end)]


@pytest.mark.field("C14")
@pytest.mark.parametrize(
    ("zone", "date", "half_hours"),
    [
        (NEW_YORK, (2026, 3, 7), 48),
        (NEW_YORK, (2026, 3, 8), 46),
        (NEW_YORK, (2026, 3, 9), 48),
        (NEW_YORK, (2026, 10, 31), 48),
        (NEW_YORK, (2026, 11, 1), 50),
        (NEW_YORK, (2026, 11, 2), 48),
        (LORD_HOWE, (2026, 4, 5), 49),
        (LORD_HOWE, (2026, 10, 4), 47),
        (KOLKATA, (2026, 3, 8), 48),
        (KOLKATA, (2026, 11, 1), 48),
    ],
)
def test_half_hours_are_half_hours_and_daily_is_daily(
    zone: str, date: tuple[int, int, int], half_hours: int
) -> None:
    start = datetime(*date, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    end = (datetime(*date, tzinfo=ZoneInfo(zone)) + timedelta(days=1)).astimezone(UTC)
    found = between("*/30 * * * *", zone, start, end)
    assert len(found) == half_hours == len({label(at, zone) for at in found})
    assert {b - a for a, b in pairwise(found)} == {timedelta(minutes=30)}
    for cron in ("30 2 * * *", "30 1 * * *", "0 0 * * *", "0 2 * * *", "45 1 * * *"):
        assert len(day(cron, zone, *date)) == 1, cron


@pytest.mark.field("C14")
def test_a_time_that_there_is_not_is_made_up_for_and_one_that_comes_twice_counts_once() -> None:
    assert day("30 2 * * *", NEW_YORK, 2026, 3, 8) == ["2026-03-08T03:00-04:00"]
    assert day("0-45/15 2 * * *", NEW_YORK, 2026, 3, 8) == ["2026-03-08T03:00-04:00"]
    assert day("30 1 * * *", NEW_YORK, 2026, 11, 1) == ["2026-11-01T01:30-04:00"]
    assert day("*/30 1 * * *", NEW_YORK, 2026, 11, 1) == [
        "2026-11-01T01:00-04:00",
        "2026-11-01T01:30-04:00",
        "2026-11-01T01:00-05:00",
        "2026-11-01T01:30-05:00",
    ]
    assert day("*/30 2 * * *", NEW_YORK, 2026, 3, 8) == []
    assert day("*/30 2 * * *", LORD_HOWE, 2026, 4, 5) == [
        "2026-04-05T02:00+10:30",
        "2026-04-05T02:30+10:30",
    ]


FRIDAYS, SUNDAYS = {1, 8, 15, 22, 29}, {3, 10, 17, 24, 31}


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 9 13 * FRI", FRIDAYS | {13}),  # either of the two will do
        ("0 9 13 * *", {13}),
        ("0 9 * * 0", SUNDAYS),
        ("0 9 */10 * MON", {11}),  # a star in front asks for both, as Vixie's cron has it
    ],
)
def test_days_of_the_month_and_of_the_week(cron: str, days: set[int]) -> None:
    """May 2026: the 1st is a Friday."""
    first, until = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    assert [at.day for at in between(cron, "UTC", first, until)] == sorted(days)


def test_sunday_has_two_numbers_and_a_name() -> None:
    start, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
    assert (
        between("0 9 * * 0", "UTC", start, until)
        == between("0 9 * * 7", "UTC", start, until)
        == between("0 9 * * sun", "UTC", start, until)
    )


@pytest.mark.parametrize(
    ("cron", "fault"),
    [
        ("0 9 * *", "has 4 fields, and five are needed"),
        ("@daily", "has 1 field, and five are needed"),
        ("0 0 9 * * *", "has 6 fields, and five are needed"),
        ("60 9 * * *", "has a wrong minute"),
        ("0 24 * * *", "has a wrong hour"),
        ("0 9 0 * *", "has a wrong day-of-month"),
        ("0 9 * JANUARY *", "has a wrong month"),
        ("0 9 * * 8", "has a wrong day-of-week"),
        ("0 9 30 2 *", "has a wrong day-of-month"),
        ("*/0 * * * *", "has a wrong minute"),
        ("0 9 * * ²", "has a wrong day-of-week"),
    ],
)
def test_what_is_wrong_is_named(cron: str, fault: str) -> None:
    assert rule_fault(cron).startswith(fault)


def test_what_is_right_is_not() -> None:
    for cron in ("0 9 * * *", "*/5 8-18 * * mon-fri", "0 0 29 FEB *", "15,45 1-5/2 L * *"):
        assert not rule_fault(cron), cron
    assert normal(" 0  9 * *\tmon ") == "0 9 * * MON"
    assert "Europe/Berlin" in zones() and "localtime" not in zones()


def test_a_leap_day_is_waited_for() -> None:
    [first, second] = islice(instants("0 0 29 2 *", "UTC", datetime(2026, 1, 1, tzinfo=UTC)), 2)
    assert (first.year, second.year) == (2028, 2032)


RULES = st.sampled_from(
    ["*/30 * * * *", "* * * * *", "*/7 1-3 * * *", "0 * * * *", "15 */2 * * *", "*/20 2 * * SUN"]
)
CHANGES = st.sampled_from(
    [
        (NEW_YORK, datetime(2026, 3, 8, 7, tzinfo=UTC)),
        (NEW_YORK, datetime(2026, 11, 1, 6, tzinfo=UTC)),
        (LORD_HOWE, datetime(2026, 4, 4, 15, tzinfo=UTC)),
        (LORD_HOWE, datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
        ("Antarctica/Troll", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("Antarctica/Troll", datetime(2026, 10, 25, 1, tzinfo=UTC)),
        (KOLKATA, datetime(2026, 5, 5, 5, tzinfo=UTC)),
    ]
)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(RULES, CHANGES, st.integers(-300, 200), st.integers(0, 59))
def test_a_rule_about_time_that_passes_is_each_minute_that_looks_like_it(
    cron: str, change: tuple[str, datetime], minutes: int, seconds: int
) -> None:
    """Against the slowest way there is: every minute, asked by itself."""
    zone, moment = change
    after = moment + timedelta(minutes=minutes, seconds=seconds)
    until = after + timedelta(hours=4)
    minute = after.replace(second=0) + timedelta(minutes=1)
    expected = []
    while minute <= until:
        wall = minute.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        if next(CronSim(cron, wall - timedelta(seconds=1))) == wall:
            expected.append(minute)
        minute += timedelta(minutes=1)
    assert list(takewhile(lambda at: at <= until, instants(cron, zone, after))) == expected


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.sampled_from(["30 2 * * *", "30 1 * * *", "0 0 * * *", "0,30 1-3 * * *", "59 2 * * *"]),
    CHANGES,
    st.integers(-3000, 3000),
)
def test_a_rule_of_fixed_times_is_told_the_same_from_wherever_one_begins(
    cron: str, change: tuple[str, datetime], minutes: int
) -> None:
    zone, moment = change
    whole = list(islice(instants(cron, zone, moment - timedelta(days=3)), 60))
    after = moment + timedelta(minutes=minutes)
    rest = [at for at in whole if at > after]
    assert list(islice(instants(cron, zone, after), len(rest))) == rest
    assert max(Counter(whole).values()) == 1 and whole == sorted(whole)
