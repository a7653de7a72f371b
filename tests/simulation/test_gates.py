"""The first of two gates, each by itself: in a fleet the second hides that it is missing."""

from __future__ import annotations

from actors.delivery import Fence
from actors.system import EffectEnded
from actors.tenure import Fenced, Session, Tenure
from actors.turn import _outcome_of


def test_a_turn_needs_a_renewal_of_a_moment_ago_and_a_settlement_a_session() -> None:
    session = Session()
    session.epoch, session.start_until, session.valid_until = 3, 6.0, 17.0
    tenure = Tenure(Fence("seat:dev", 1, 7), session, under=3)
    assert tenure.may_start(5.9) and tenure.may_settle(16.9)
    assert not tenure.may_start(6.0)
    assert not tenure.may_settle(17.0)


def test_a_turn_whose_completion_was_refused_comes_to_nothing() -> None:
    assert _outcome_of(EffectEnded(1, None, Fenced("taken over"))) is None
