"""Mail that a dead holder had in flight is taken back by whoever establishes the seat next, however
many give it up before. Found by the simulation: a seat that was taken from the dead and given up
before it was established looked free in order, and its mail sat out the ack window."""

from __future__ import annotations

import pytest

from actors.machines import handoff
from actors.machines.fleet_view import FleetView
from actors.machines.timing import Timing
from actors.tenure import MAIL_OUT, Lease

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
    view.saw(Lease(resource="seat:dev", **free, about={MAIL_OUT: "1"}, revision=8), 1.0)
    assert view.died("seat:dev")
    view.saw(Lease(resource="seat:dev", **free, revision=9), 2.0)
    assert not view.died("seat:dev")
