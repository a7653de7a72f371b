"""What becomes of a seat's record: over every state, and over random histories of days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlet.revisions.retirement import (
    GRACE,
    Retire,
    SeatRecord,
    absent,
    decoded,
    encoded,
    next_step,
    present,
    retired,
    retiring,
    spared,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def step(record: SeatRecord | None, *, wanted: bool, listed: bool = True, later: timedelta = HOUR):
    return next_step(record, wanted=wanted, listed=listed, now=NOW + later)


MARKED = retiring(absent(NOW - GRACE), by="n1", now=NOW, mail=3)
GONE = retired(MARKED, now=NOW)


@pytest.mark.certifies(149, 151, 153)
def test_every_state_of_a_seat_that_the_company_has_ends_in_present():
    assert step(present(NOW), wanted=True) is None
    for record in (None, absent(NOW - 2 * GRACE), MARKED, GONE):
        assert step(record, wanted=True) == present(NOW + HOUR)


@pytest.mark.certifies(149, 152)
def test_an_absent_seat_is_stamped_once_and_retired_a_day_later():
    stamped = absent(NOW + HOUR)
    assert step(present(NOW), wanted=False) == stamped
    assert step(None, wanted=False) == stamped, "it escaped the records, and the broker has it"
    assert next_step(stamped, wanted=False, listed=True, now=NOW + GRACE) is None
    assert next_step(stamped, wanted=False, listed=True, now=NOW + HOUR + GRACE) == Retire()
    assert next_step(stamped, wanted=False, listed=True, now=NOW - GRACE) is None, "a clock behind"


@pytest.mark.certifies(153)
def test_what_was_begun_is_ended_and_what_is_done_stays_done():
    assert step(MARKED, wanted=False) == Retire()
    assert step(GONE, wanted=False, listed=False) is None
    assert step(GONE, wanted=False, listed=True) == absent(NOW + HOUR), "somebody made it again"
    assert spared(MARKED) == absent(NOW - GRACE), "its day is not begun anew"


def test_a_record_is_read_as_it_was_written_and_anothers_is_not():
    for record in (present(NOW), absent(NOW), MARKED, GONE):
        assert decoded(encoded(record)) == record
    for bad in (b"", b"{}", b'{"state": "asleep", "since": "2026-03-01T00:00:00Z"}'):
        assert decoded(bad) is None


@pytest.mark.certifies(149, 151)
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=30))
def test_no_history_retires_a_seat_that_was_there_within_a_day(history: list[tuple[bool, int]]):
    """`history`: whether a sweep sees the seat, and how many quarters of an hour later."""
    now, last_seen = NOW, NOW
    record: SeatRecord | None = present(NOW)
    for wanted, quarters in history:
        now += timedelta(minutes=15 * quarters)
        last_seen = now if wanted else last_seen
        done = next_step(record, wanted=wanted, listed=True, now=now)
        if isinstance(done, Retire):
            assert not wanted and now - last_seen >= GRACE
            return
        record = done or record
        assert record is not None and record.state == ("present" if wanted else "absent")
