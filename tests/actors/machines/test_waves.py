"""The pace of a node that leaves, step by step."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.machines.placement import GiveUp
from actors.machines.waves import ENDS_S, QUICK_S, TAKEN_S, Waves
from actors.machines.window import FIRST, LEAST, MOST


def leaving(seats: int) -> Waves:
    waves = Waves()
    waves.plan([GiveUp(f"s{number}", "role", "b") for number in range(seats)])
    return waves


def handles(seats: list[GiveUp]) -> list[str]:
    return [seat.handle for seat in seats]


@pytest.mark.certifies(272)
def test_only_a_few_are_nobodys_at_a_time_and_the_next_goes_when_one_was_taken() -> None:
    waves = leaving(100)
    first = handles(waves.due(0.0))
    assert first == [f"s{number}" for number in range(int(FIRST))] and waves.due(0.0) == []
    waves.released("s0", 0.01)
    assert waves.due(0.01) == []  # it is nobody's yet
    waves.taken("s0", 0.02)
    assert handles(waves.due(0.02)) == [f"s{int(FIRST)}"]


def test_a_turn_that_runs_holds_up_no_other_seat() -> None:
    waves = leaving(20)
    assert len(waves.due(0.0)) == int(FIRST)
    assert waves.next_at() == ENDS_S and waves.due(ENDS_S - 0.01) == []
    assert len(waves.due(ENDS_S)) == int(FIRST)


def test_successors_that_take_nothing_hold_up_nobody_for_long() -> None:
    waves = leaving(20)
    for seat in waves.due(0.0):
        waves.released(seat.handle, 0.1)
    assert waves.due(0.1 + TAKEN_S - 0.01) == []
    assert len(waves.due(0.1 + TAKEN_S)) == int(LEAST)


def test_mail_lets_a_seat_go_out_of_its_turn() -> None:
    waves = leaving(100)
    waves.due(0.0)
    assert waves.at_once("s50", 0.0) == GiveUp("s50", "role", "b")
    assert waves.at_once("s50", 0.0) is None and waves.at_once("s0", 0.0) is None


def test_a_node_that_stays_after_all_lets_go_of_no_more() -> None:
    waves = leaving(100)
    for seat in waves.due(0.0):
        waves.taken(seat.handle, 0.01)
    waves.plan([])
    assert waves.due(0.02) == [] and waves.next_at() == float("inf") and waves.idle


@pytest.mark.parametrize(("took_s", "at_last"), [(QUICK_S / 2, MOST), (QUICK_S * 3, LEAST)])
def test_more_go_at_a_time_where_they_are_taken_quickly(took_s: float, at_last: float) -> None:
    waves, now = leaving(5000), 0.0
    (first, *out) = handles(waves.due(now))
    waves.released(first, now)
    waves.taken(first, now + QUICK_S / 4)  # as quick as it can be
    for _ in range(100):
        out += handles(waves.due(now))
        for handle in out:
            waves.released(handle, now)
        now += took_s
        for handle in out:
            waves.taken(handle, now)
        out = []
    assert len(waves.due(now)) == int(at_last)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.data())
def test_every_seat_goes_once_whatever_is_heard(data: st.DataObject) -> None:
    waves, now, gone = leaving(30), 0.0, list[str]()
    for _ in range(400):
        gone += handles(waves.due(now))
        known = st.sampled_from([f"s{number}" for number in range(32)])
        match data.draw(st.sampled_from(("released", "taken", "at_once", "time"))):
            case "released":
                waves.released(data.draw(known), now)
            case "taken":
                waves.taken(data.draw(known), now)
            case "at_once":
                seat = waves.at_once(data.draw(known), now)
                gone += [seat.handle] if seat else []
            case "time":
                if waves.next_at() == float("inf"):
                    break
                assert waves.next_at() > now or waves.due(now) == []
                now = max(now, waves.next_at())
    while (at := waves.next_at()) < float("inf"):
        now = max(now, at)
        gone += handles(waves.due(now))
    assert sorted(gone) == sorted(f"s{number}" for number in range(30))
