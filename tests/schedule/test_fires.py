"""What a look brings: one fire for an entry at the most, the rest said to be missed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlet.schedule.entry import Schedule
from crewlet.schedule.fires import (
    LONGEST_WINDOW,
    MOST_MISSED,
    SHORTEST_WINDOW,
    Agenda,
    Fire,
    Standing,
    agenda,
    next_fire,
    window,
)
from crewlet.schedule.rule import instants

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def entry(cron: str, *, zone: str = "UTC", name: str = "it", jitter_s: int = 0) -> Schedule:
    return Schedule(
        scope_type="role",
        scope="dev",
        name=name,
        cron=cron,
        text="work",
        zone=zone,
        targets=("dev",),
        jitter_s=jitter_s,
    )


def at(clock: str, day: int = 2) -> datetime:
    hour, minute, second = (*map(int, clock.split(":")), 0)[:3]
    return datetime(2026, 6, day, hour, minute, second, tzinfo=UTC)


def look(one: Schedule, looked: datetime, now: datetime, since: datetime = LONG_AGO) -> Agenda:
    return agenda([Standing(one, since)], looked, now)


def labels(fires: Sequence[Fire]) -> list[str]:
    return [fire.label[11:16] for fire in fires]


def test_a_fire_is_due_from_its_instant_on_and_at_the_next_look() -> None:
    daily = entry("0 9 * * *")
    assert not look(daily, at("8:59:40"), at("8:59:59"))
    assert labels(look(daily, at("8:59:50"), at("9:00")).due) == ["09:00"]
    assert labels(look(daily, at("8:59:55"), at("9:00:05")).due) == ["09:00"]
    assert not look(daily, at("9:00"), at("9:00:10"))


@pytest.mark.parametrize(
    ("cron", "seconds"),
    [
        ("0 9 * * *", 7200),
        ("0 */2 * * *", 3600),
        ("*/30 * * * *", 900),
        ("*/5 * * * *", 150),
        ("* * * * *", 120),
        ("0 9 1 1 *", 7200),
    ],
)
def test_the_window_is_half_the_period_within_bounds(cron: str, seconds: int) -> None:
    fire = next_fire(entry(cron), at("8:59"))
    assert fire is not None and window(fire) == timedelta(seconds=seconds)
    late = look(fire.entry, fire.at - timedelta(seconds=1), fire.at + window(fire))
    assert late.due[-1:] == (fire,) or fire in late.missed[0].fires
    gone = look(fire.entry, fire.at - timedelta(seconds=1), fire.at + timedelta(seconds=7201))
    assert fire not in gone.due and fire in gone.missed[0].fires


@pytest.mark.field("C41")
def test_of_a_gap_each_entry_makes_up_for_one_fire_at_the_most() -> None:
    found = agenda(
        [Standing(entry("0 9 * * *"), LONG_AGO), Standing(entry("* * * * *"), LONG_AGO)],
        at("8:59:30"),
        at("9:03:30"),
    )
    assert [labels([fire]) for fire in found.due] == [["09:00"], ["09:03"]]
    [missed] = found.missed
    assert labels(missed.fires) == ["09:00", "09:01", "09:02"]


@pytest.mark.field("C07")
def test_nothing_fires_for_a_moment_before_the_entry_was_there() -> None:
    moved = entry("30 11 * * *")
    assert not look(moved, at("8:00"), at("12:31"), since=at("12:00"))
    assert not look(moved, at("8:00"), at("11:30:09"), since=at("11:30:01"))
    assert labels(look(moved, at("8:00"), at("11:30:09"), since=at("11:30")).due) == ["11:30"]


def test_a_clock_that_goes_back_brings_nothing() -> None:
    assert not look(entry("* * * * *"), at("9:00"), at("7:00"))


def test_a_long_silence_is_counted_up_to_a_bound() -> None:
    found = look(entry("* * * * *"), at("9:00", 1), at("9:00", 1) + timedelta(days=20))
    [missed] = found.missed
    assert missed.more and len(found.due) == 1
    assert MOST_MISSED <= len(missed.fires) <= MOST_MISSED + LONGEST_WINDOW.seconds // 60 + 1


def test_jitter_is_the_same_each_time_and_moves_the_fire_not_its_label() -> None:
    spread = entry("0 9 * * *", jitter_s=3000)
    shift = timedelta(seconds=spread.shift_s)
    assert timedelta(0) < shift <= timedelta(seconds=3000)
    assert spread.shift_s == entry("0 9 * * *", jitter_s=3000).shift_s
    due = at("9:00") + shift
    assert not look(spread, at("8:00"), due - timedelta(seconds=1))
    assert labels(look(spread, due - timedelta(seconds=1), due).due) == ["09:00"]
    assert next_fire(spread, due - timedelta(seconds=1)) == Fire(spread, at("9:00"))
    assert next_fire(spread, due) == Fire(spread, at("9:00", 3))


def test_an_entry_is_what_it_says_and_not_what_it_is_called() -> None:
    plain = entry("0 9 * * MON")
    assert plain.id == entry("0  9 * * mon", name="another").id
    for other in (entry("0 9 * * TUE"), entry("0 9 * * MON", zone="Asia/Kolkata")):
        assert other.id != plain.id


CRONS = st.sampled_from(
    ["* * * * *", "*/5 * * * *", "*/30 * * * *", "0 9 * * *", "30 1 * * *", "30 2 * * *"]
)
ZONES = st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
STARTS = st.sampled_from(
    [
        datetime(2026, 3, 8, 4, tzinfo=UTC),
        datetime(2026, 11, 1, 2, tzinfo=UTC),
        datetime(2026, 4, 4, 12, tzinfo=UTC),
        datetime(2026, 10, 3, 12, tzinfo=UTC),
    ]
)
GAPS = st.lists(
    st.one_of(st.integers(1, 15), st.integers(16, 600), st.integers(601, 20_000)), max_size=60
)


@pytest.mark.field("C07")
@pytest.mark.field("C14")
@pytest.mark.field("C41")
@settings(derandomize=True, max_examples=150, deadline=None)
@given(CRONS, ZONES, STARTS, GAPS, st.integers(-7200, 7200), st.sampled_from([0, 0, 90, 3600]))
def test_every_instant_is_fired_or_missed_once_and_none_before_its_entry(
    cron: str, zone: str, start: datetime, gaps: list[int], since_s: int, jitter_s: int
) -> None:
    one = entry(cron, zone=zone, jitter_s=jitter_s)
    since, looked = start + timedelta(seconds=since_s), start
    shift = timedelta(seconds=one.shift_s)
    said: list[Fire] = []
    for gap in gaps:
        now = looked + timedelta(seconds=gap)
        found = look(one, looked, now, since)
        assert len(found.due) <= 1 and len(found.missed) <= 1
        for fire in found.due:
            assert SHORTEST_WINDOW <= window(fire) <= LONGEST_WINDOW
            assert fire.due <= now <= fire.due + window(fire)
        for missed in found.missed:
            assert not missed.more
            said += missed.fires
        said += found.due
        looked = now
    first = max(start - shift, since - timedelta(microseconds=1))
    expected = list(takewhile(lambda at: at <= looked - shift, instants(cron, zone, first)))
    assert [fire.at for fire in said] == expected
    assert len({fire.label for fire in said}) == len(said)
    assert all(fire.at >= since for fire in said)
