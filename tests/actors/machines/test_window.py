"""How much is done at a time."""

from __future__ import annotations

import pytest

from actors.machines.window import FIRST, LEAST, MOST, Window


@pytest.mark.parametrize(("took_s", "size"), [(0.02, MOST), (0.2, LEAST)])
def test_more_is_done_at_a_time_where_it_goes_quickly(took_s: float, size: float) -> None:
    window = Window(0.03)
    window.done(0.01)  # as quick as it can be
    for _ in range(2500):
        window.done(took_s)
    assert window.size == int(size)


def test_where_nothing_is_quick_what_is_as_quick_as_the_others_stands_in_no_line() -> None:
    window = Window(0.03)
    for _ in range(2500):
        window.done(0.4)  # a broker that is some way away
    assert window.size == int(MOST)


def test_it_settles_where_things_take_twice_as_long_as_alone_or_what_is_quick() -> None:
    """One processor: ten at once take ten times as long as one."""
    window = Window(0.03)
    window.done(0.005)  # alone
    for _ in range(2500):
        window.done(0.005 * window.size)
    assert 0.02 <= 0.005 * window.size <= 0.04


def test_what_was_not_done_at_all_begins_anew_from_few() -> None:
    window = Window(0.03)
    assert window.size == int(FIRST)
    window.close()
    assert window.size == int(LEAST)
