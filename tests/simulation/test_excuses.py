"""What a run may miss for a while: for a fault that its trace shows, and not for ever."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from actors.simulation.checkers import Audit, Checker, Liveness, Retained, Rules
from actors.simulation.checkers.excuses import AFTER_S, FOUND_S
from tests.simulation.histories import (
    CALM,
    Line,
    at,
    delivered,
    judge,
    n1,
    published,
    settled,
    ticks,
)

OUT, ALIVE = [("dev", 1)], {"n1#1": True}

HANDED_BACK = [*CALM, *published(1), *delivered(1, t=12.0), *settled("defer", 1, t=12.1)]
FORGOTTEN = [*HANDED_BACK, at(12.2, "fault", code="broker_restart", sent=1.0)]

CUT = at(11.0, "fault", node="n1", code="cut", sent=12.0)
GIVEN = at(12.0, "deliver", **n1(seat="dev", msg="m1", seq=1, dc=1, fence=1, pos=1))
UNREPAIRED = at(23.0, "note", **n1(code="unrepaired"))
LOST = [*CALM, *published(1, t=10.5), CUT, GIVEN, UNREPAIRED]

EXCUSED = [pytest.param(FORGOTTEN, id="forgotten"), pytest.param(LOST, id="lost")]


@pytest.mark.parametrize("lines", EXCUSED)
def test_what_a_fault_explains_may_be_missed_for_a_while(lines: list[Line]):
    soon = ticks(FOUND_S - 1.0, OUT, ALIVE)
    assert judge(lines, then=soon) == []
    assert judge(lines, then=soon, rules=Rules(excuse=False)) == ["L3"]


@pytest.mark.parametrize("lines", EXCUSED)
def test_an_excuse_runs_out(lines: list[Line]):
    assert "L4" in judge(lines, then=ticks(FOUND_S + 20.0, OUT, ALIVE))


@pytest.mark.parametrize("lines", EXCUSED)
def test_what_is_found_in_time_needs_none(lines: list[Line]):
    again = at(40.0, "deliver", **n1(seat="dev", msg="m1", seq=1, dc=2, fence=1, pos=2))
    got = at(40.0, "got", **n1(seat="dev", seq=1, dc=2))
    assert judge([*lines, again, got], then=ticks(FOUND_S + 20.0, OUT, ALIVE)) == []


@pytest.mark.parametrize("lines", EXCUSED)
def test_in_the_end_it_is_worked_or_dead_like_everything_else(lines: list[Line]):
    left = Audit((Retained("dev", 1, 1),))
    assert judge(lines, audit=left) == ["L4"]
    worked = [
        at(30.0, "complete_ok", **n1(seat="dev", msg="m1", fence=7)),
        at(30.1, "ack", **n1(seat="dev", msg="m1", seq=1, dc=1)),
    ]
    assert judge([*lines, *worked], audit=Audit()) == []
    dead = at(30.1, "dlq", **n1(seat="dev", msg="m1", seq=1, dc=1))
    assert judge([*lines, dead], audit=Audit()) == []


def without_cause() -> list[tuple[str, list[Line]]]:
    other = at(11.0, "fault", node="n2", code="cut", sent=12.0)
    harmless = at(11.0, "fault", node="n1", code="watch_late", sent=12.0)
    past = at(11.0 - 12.0 - AFTER_S, "fault", node="n1", code="cut", sent=10.0)
    begun = [*CALM, *published(1, t=10.5)]
    return [
        ("nothing happened", [*begun, GIVEN, UNREPAIRED]),
        ("it befell another", [*begun, other, GIVEN, UNREPAIRED]),
        ("it loses nothing", [*begun, harmless, GIVEN, UNREPAIRED]),
        ("it is long past", [past, *begun, GIVEN, UNREPAIRED]),
    ]


@pytest.mark.parametrize(("why", "lines"), without_cause())
def test_nothing_is_excused_without_a_fault_that_explains_it(why: str, lines: list[Line]):
    assert judge(lines, then=ticks(20.0, OUT, ALIVE)) == ["L3"], why


def test_the_sentence_names_the_fault():
    said: list[str] = []

    def ends(checkers: Sequence[Checker]) -> None:
        (liveness,) = [one for one in checkers if isinstance(one, Liveness)]
        said.append(str(liveness.excuses.get(("dev", 1))))
        assert liveness.figures()["excused"] == 1.0

    assert judge(LOST, then=ends) == []
    assert said == ["lost in an outage longer than its client repairs: cut of n1 at 11.000"]


@pytest.mark.parametrize("end", ["ack", "dlq"])
@pytest.mark.parametrize("back_s", [12.05, 12.15], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["reclaim", "defer"])
def test_what_its_former_holder_settled_late_was_handed_back_and_is_not_forgotten(
    kind: str, back_s: float, end: str
):
    heir = {"node": "n2", "inc": 1, "seat": "dev"}
    deferred = at(back_s, "defer", **heir, msg="m1", seq=1, dc=2)
    back = at(back_s, "reclaim", **heir, code="all") if kind == "reclaim" else deferred
    late = [
        at(12.06, "complete_ok", **n1(seat="dev", msg="m1", fence=7)),
        at(12.1, end, **n1(seat="dev", msg="m1", seq=1, dc=1)),
    ]
    restart = at(12.2, "fault", code="broker_restart", sent=1.0)
    told = sorted([*late, back], key=lambda line: line[0])
    lines = [*CALM, *published(1), *delivered(1, t=12.0), *told, restart]
    assert judge(lines, then=ticks(FOUND_S + 20.0, [], ALIVE)) == []
