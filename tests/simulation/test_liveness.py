"""Each promise of the calm has a history that breaks it, and one close by that does not."""

from __future__ import annotations

from tests.simulation.histories import (
    CALM,
    Line,
    at,
    delivered,
    judge,
    n1,
    n2,
    published,
    ticks,
)


def test_a_dead_node_s_mail_is_delivered_in_time():
    drill = at(11.0, "drill", seat="dev", code="crash")
    late = [at(40.0, "deliver", **n2(seat="dev", msg="m1", seq=1, dc=1))]
    soon = [at(31.0, "deliver", **n2(seat="dev", msg="m1", seq=1, dc=1))]
    assert judge([*CALM, drill, *soon]) == []
    assert judge([*CALM, drill, *late]) == ["L1"]
    assert judge([*CALM, drill], then=ticks(30.0, [], {})) == ["L1"]


def test_who_comes_after_is_at_work_at_once():
    leave = [
        at(11.0, "drill", seat="dev", code="leave"),
        at(11.1, "release", **n1(seat="dev", fence=8, dc=1)),
        at(11.11, "session", **n2(dc=1, sent=11.1)),
        at(11.12, "grant", **n2(seat="dev", fence=9, dc=2, pos=1)),
    ]

    def turn(t: float) -> list[Line]:
        letter = {"msg": "m1", "seq": 1, "dc": 1, "sent": 1.0, "code": "dev"}
        return [
            at(t, "turn_start", **n2(seat="dev", fence=9, key="k", pos=1, sent=t)),
            at(t, "turn_letter", **n2(seat="dev", **letter)),
        ]

    waits, comes_later = published(1, t=10.5), published(1, t=11.5)
    assert judge([*CALM, *waits, *leave, *turn(11.2)]) == []
    assert judge([*CALM, *waits, *leave, *turn(13.2)]) == ["L2"]
    assert judge([*CALM, *leave, *comes_later, *turn(13.2)]) == []


def test_mail_in_nobody_s_hands_is_taken_back():
    lost = [at(12.0, "deliver", **n1(seat="dev", msg="m1", seq=1, dc=1))]
    there = [*lost, at(12.01, "got", **n1(seat="dev", seq=1, dc=1))]
    out, alive = [("dev", 1)], {"n1#1": True}
    assert judge([*CALM, *there], then=ticks(10.0, out, alive)) == []
    assert judge([*CALM, *lost], then=ticks(10.0, out, alive)) == ["L3"]
    again = at(12.1, "deliver", **n1(seat="dev", msg="m1", seq=1, dc=2))
    late = [
        at(12.2, "got", **n1(seat="dev", seq=1, dc=2)),
        at(20.0, "got", **n2(seat="dev", seq=1, dc=1)),
    ]
    assert judge([*CALM, *lost, again, *late], then=ticks(10.0, out, alive)) == []


def test_a_lost_leader_moves_no_seat():
    moved = [
        at(15.0, "release", **n1(seat="dev", fence=8, dc=1)),
        at(15.1, "grant", **n2(seat="dev", fence=9, dc=2, pos=1)),
    ]
    drill = [at(11.0, "drill", code="leader_loss"), at(14.0, "drill", code="leader_back")]
    assert judge([*CALM, *drill, *moved]) == []
    assert judge([*CALM, drill[0], *moved]) == ["L7"]


def test_what_is_lifted_is_worked_at_once():
    lift = at(11.0, "drill", seat="dev", code="lift")
    assert judge([*CALM, lift, *delivered(1, t=11.2)]) == []
    assert judge([*CALM, lift, *delivered(1, t=13.0)]) == ["L8"]
