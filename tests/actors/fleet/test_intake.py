"""What a node is to take: in order, and so many at a time as it can."""

from __future__ import annotations

from actors.fleet_messages import TakeSeat
from actors.intake import Intake
from actors.machines.window import FIRST


def taking(seats: int) -> Intake:
    intake = Intake()
    for number in range(seats):
        intake.put(TakeSeat(f"s{number}", None, died=False))
    return intake


def begun(intake: Intake, now: float) -> list[str]:
    handles = []
    while (wanted := intake.next()) is not None:
        intake.began(wanted.handle, now)
        handles.append(wanted.handle)
    return handles


def test_the_next_is_begun_when_one_is_there_or_came_to_nothing() -> None:
    intake = taking(20)
    assert begun(intake, 0.0) == [f"s{number}" for number in range(int(FIRST))]
    assert begun(intake, 0.0) == []
    intake.gone("s2")
    assert begun(intake, 0.1) == [f"s{int(FIRST)}"]
    intake.there("s0", 1.0)
    intake.there("s0", 1.0)  # said twice, it makes room once
    assert begun(intake, 1.0) == [f"s{int(FIRST) + 1}"]


def test_what_is_not_wanted_any_more_takes_no_room() -> None:
    intake = taking(20)
    passed_by = [intake.next() for _ in range(20)]
    assert all(passed_by) and intake.next() is None


def test_those_that_wait_are_named_when_none_is_to_be_taken() -> None:
    intake = taking(10)
    begun(intake, 0.0)
    waiting = [f"s{number}" for number in range(int(FIRST), 10)]
    assert [wanted.handle for wanted in intake.clear()] == waiting
    assert intake.clear() == [] and begun(intake, 0.0) == []
