"""The judge bites: each kind of damage, made up, is seen for what it is."""

from __future__ import annotations

import pytest

from tests.chaos.checks import (
    Completed,
    LeaseRow,
    Recorded,
    Turn,
    judge,
    ledger_key,
    percentiles,
    turns_of,
)

KEY = ledger_key("s00", "m1")


def _row(sequence: int, node: str, epoch: int, *, released: bool = False) -> LeaseRow:
    return LeaseRow("s00", sequence, epoch, node, f"{node}:x", released, float(sequence))


def _turn(node: str, began: float, ended: float, turn: str = "t1") -> Turn:
    return Turn(node, f"{node}#1", "s00", turn, ("m1",), 1, began, began, ended, "end")


def _good() -> Recorded:
    recorded = Recorded(sent={KEY: "m1"}, seat_rows=[_row(1, "n1", 1)])
    recorded.completed = [Completed(KEY, 2, 1, "n1", "t1")]
    recorded.worked.update(["m1"])
    return recorded


def test_a_good_run_has_no_faults() -> None:
    verdicts = judge(_good(), [_turn("n1", 1.0, 2.0)])
    assert verdicts.faults == {}
    assert (verdicts.sent, verdicts.completed, verdicts.by_node) == (1, 1, {"n1": 1})


def test_what_was_sent_and_is_nowhere_is_lost() -> None:
    recorded = _good()
    recorded.sent[ledger_key("s00", "m2")] = "m2"
    assert judge(recorded, []).faults == {"lost": ["m2"]}


def test_a_dead_letter_is_not_lost_and_two_are_doubled() -> None:
    recorded = _good()
    recorded.sent[ledger_key("s00", "m2")] = "m2"
    recorded.dead.update(["m2"])
    assert judge(recorded, []).faults == {}
    recorded.dead.update(["m2"])
    assert judge(recorded, []).faults == {"doubled": ["m2"]}


@pytest.mark.parametrize("how", ["event", "row"])
def test_two_completions_are_doubled(how: str) -> None:
    recorded = _good()
    if how == "event":
        recorded.worked.update(["m1"])
    else:
        recorded.completed.append(Completed(KEY, 3, 1, "n1", "t2"))
    assert judge(recorded, []).faults == {"doubled": ["m1"]}


def test_what_nobody_sent_is_unexpected() -> None:
    recorded = _good()
    recorded.completed.append(Completed("s00.other", 3, 1, "n1", "t2"))
    recorded.worked.update(["m9"])
    assert judge(recorded, []).faults == {"unexpected": ["m9", "s00.other"]}


@pytest.mark.parametrize(
    "between",
    [_row(2, "n2", 2), _row(2, "n1", 1, released=True)],
    ids=["taken by another", "given up"],
)
def test_a_completion_under_a_fence_that_is_over_is_stale(between: LeaseRow) -> None:
    recorded = _good()
    recorded.seat_rows.append(between)
    recorded.completed = [Completed(KEY, 3, 1, "n1", "t1")]
    assert list(judge(recorded, []).faults) == ["stale"]


def test_a_completion_without_a_fence_is_stale() -> None:
    recorded = _good()
    recorded.completed = [Completed(KEY, 2, 0, "n1", "t1")]
    assert list(judge(recorded, []).faults) == ["stale"]


def test_a_zombie_may_run_beside_its_successor_and_may_not_complete() -> None:
    turns = [_turn("n1", 1.0, 5.0, "t1"), _turn("n2", 4.0, 6.0, "t2")]
    recorded = _good()
    verdicts = judge(recorded, turns)
    assert (verdicts.faults, verdicts.zombies, verdicts.again) == ({}, 1, 1)
    recorded.completed.append(Completed("s00.x", 9, 1, "n2", "t2"))
    recorded.sent["s00.x"] = "m2"
    assert list(judge(recorded, turns).faults) == ["both"]


def test_a_turn_without_an_end_ended_with_its_process() -> None:
    line = {"node": "n1", "incarnation": "n1#1", "seat": "s00", "keys": ["m1"], "attempt": 1}
    lines = [
        {**line, "kind": "start", "turn": "a", "at": 1.0, "wall": 1.0},
        {**line, "kind": "start", "turn": "b", "at": 2.0, "wall": 2.0},
        {**line, "kind": "end", "turn": "a", "at": 3.0, "wall": 3.0},
    ]
    a, b = turns_of(lines, {"n1#1": 7.0})
    assert (a.ended, a.how) == (3.0, "end")
    assert (b.ended, b.how) == (7.0, "died")
    assert turns_of(lines, {})[1].how == "open"


def test_percentiles() -> None:
    assert percentiles([]) == {}
    assert percentiles([3.0, 1.0, 2.0]) == {"n": 3, "p50": 2.0, "p99": 3.0, "max": 3.0}
