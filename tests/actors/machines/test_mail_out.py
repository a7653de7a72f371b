"""Mail that a dead holder had in flight is taken back by whoever establishes the seat next, however
many give it up before. Found by the simulation: a seat that was taken from the dead and given up
before it was established looked free in order, and its mail sat out the ack window."""

from __future__ import annotations

from typing import Any

import pytest

from actors.holding import Holding
from actors.holding import release as written
from actors.machines import handoff
from actors.machines.fleet_view import FleetView
from actors.machines.timing import Timing
from actors.tenure import MAIL_OUT, WATCHED_S, Lease

ROW = Lease(resource="seat:dev", owner="n1#1", node="n1", epoch=3, session=1, revision=7)


def release(*inputs: handoff.Input) -> handoff.WriteRelease:
    machine = handoff.Handoff()
    effects: list[handoff.Effect] = []
    for given in inputs:
        effects += machine.step(given)
    (written,) = [one for one in effects if isinstance(one, handoff.WriteRelease)]
    return written


@pytest.mark.parametrize("died", [True, False])
def test_given_up_before_it_was_established(died: bool):
    inputs = (handoff.Take(None, died), handoff.Claimed(ROW), handoff.GiveUp("balance"))
    assert release(*inputs, handoff.Empty()).mail_out is died


def test_given_up_before_the_claim_was_answered():
    given_up = handoff.Take(None, died=True), handoff.GiveUp("balance"), handoff.Claimed(ROW)
    assert release(*given_up, handoff.Empty()).mail_out


def test_what_was_established_has_taken_it_back():
    held = handoff.Take(None, died=True), handoff.Claimed(ROW), handoff.Established()
    assert not release(*held, handoff.GiveUp("balance"), handoff.Empty()).mail_out


def test_who_has_to_look():
    view = FleetView(Timing())
    assert view.died("seat:dev")  # nobody knows: the rows may have been deleted
    view.saw(ROW, 0.0)
    assert view.died("seat:dev")
    free = {"owner": "n1#1", "node": "n1", "epoch": 3, "session": 1, "released": True}
    view.saw(Lease(resource="seat:dev", **free, about={MAIL_OUT: "10.000"}, revision=8), 1.0)
    assert view.died("seat:dev")
    view.saw(Lease(resource="seat:dev", **free, revision=9), 2.0)
    assert not view.died("seat:dev")


def test_what_is_left_of_the_watch_is_handed_on():
    """Else a seat that changes hands more often than a watch lasts is watched for ever."""
    died = Holding("dev", 1, ROW)
    died.watched_until = end = 100.0 + died.watch_s
    write = handoff.WriteRelease(ROW, "n2", ordered=False)
    left_s = died.mail_out_s(write, end - 10.0)
    row = written(write, mail_out_s=left_s)
    assert left_s == 10.0 and row.about == {MAIL_OUT: "10.000"}
    heir = Holding("dev", 2, row)
    assert heir.watch_s == 10.0
    heir.watched_until = end - 9.0 + heir.watch_s
    assert heir.mail_out_s(write, end + 2.0) == 0.0
    assert written(write, mail_out_s=0.0).about == {}


def test_the_watch_is_whole_where_it_did_not_begin_or_something_new_may_be_out():
    row = Lease(**{**_fields(ROW), "released": True, "about": {MAIL_OUT: "7"}})
    seat = Holding("dev", 1, row)
    unestablished = handoff.WriteRelease(ROW, "", ordered=False, mail_out=True)
    assert seat.mail_out_s(unestablished, 500.0) == 7.0
    seat.doubted = True
    assert seat.mail_out_s(unestablished, 500.0) == WATCHED_S


@pytest.mark.parametrize("said", ["", "soon", "nan", "-1", "1e9"])
def test_nonsense_in_a_row_is_the_whole_watch(said: str):
    row = Lease(**{**_fields(ROW), "released": True, "about": {MAIL_OUT: said}})
    assert Holding("dev", 1, row).watch_s == WATCHED_S


def _fields(lease: Lease) -> dict[str, Any]:
    return {name: getattr(lease, name) for name in Lease.__struct_fields__}
