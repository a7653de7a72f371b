"""Letting go: a detach, a cut, and the drain of a node, at any moment."""

from __future__ import annotations

import pytest
from consumer_caller import PROBE, letter, positions
from consumer_states import STATES, running

from actors.delivery import Ack, Defer, HandBack, Nak, Retry
from actors.machines import signals
from actors.machines.consumer import RESUME, State

attachments = pytest.mark.parametrize("state", [s for s in STATES if s is not State.DETACHED])


# -- detach and cut -------------------------------------------------------------------


@pytest.mark.certifies(67)
@attachments
def test_every_attachment_is_released_once_whatever_it_was_at(state: State) -> None:
    caller = STATES[state]()
    caller.step(signals.Detach())
    caller.step(signals.Detach())
    caller.quiet()
    assert (caller.releases, caller.consumer.state) == (1, State.DETACHED)


@pytest.mark.certifies(67)
def test_detach_does_not_wait_for_the_handler_whose_outcome_still_applies() -> None:
    caller = running()
    effects = caller.step(signals.Detach())
    assert isinstance(effects[0], signals.Settle)
    assert positions(effects[0].verdicts) == [2, 3]
    assert effects[1:] == [], "the release comes after what goes back"
    assert caller.settled() == [signals.Release()]
    caller.ended(Nak("boom"))
    assert caller.verdicts["1/1"] == Retry(1.0)
    caller.quiet()
    assert caller.consumer.state is State.DETACHED


@pytest.mark.certifies(67, 68)
@pytest.mark.parametrize("outcome", [Ack(), Nak("boom"), Defer("busy")])
def test_a_mailbox_attached_again_waits_for_the_handler_of_before(
    outcome: Ack | Nak | Defer,
) -> None:
    caller = running()
    caller.step(signals.Detach())
    caller.settled()
    assert caller.attach() == []
    caller.ended(outcome)
    assert ("1/1" in caller.verdicts) and caller.unanswered == []
    if outcome == Defer("busy"):  # of the attachment that is there now
        caller.settled()
        assert caller.pull is None
        caller.fired(RESUME)
    assert caller.pull == PROBE
    caller.step(signals.Detach())
    caller.quiet()
    assert caller.releases == 2


def test_a_deferral_after_the_detach_starts_no_timer() -> None:
    caller = running()
    caller.step(signals.Detach())
    caller.ended(Defer("busy"))
    assert caller.timers == {}


@pytest.mark.certifies(84)
def test_a_cut_hands_back_the_running_mail_and_hears_the_handler_no_more() -> None:
    caller = running()
    number = caller.consumer._number
    effects = caller.step(signals.Cut())
    assert effects[0] == signals.Abandon(number)
    assert isinstance(effects[1], signals.Settle)
    assert positions(effects[1].verdicts) == [1, 2, 3]
    assert caller.step(signals.Ended(number, Ack())) == []
    assert caller.step(signals.Cut()) == []
    assert set(caller.verdicts.values()) == {HandBack()}


def test_an_outcome_after_a_cut_does_not_touch_the_next_run() -> None:
    caller = running()
    number = caller.consumer._number
    caller.step(signals.Cut())
    caller.settled()
    caller.pulled(letter(1, "a", at=1, count=2))
    assert caller.run is not None
    assert caller.step(signals.Ended(number, Ack())) == []
    assert caller.consumer.running is not None


# -- the drain ------------------------------------------------------------------------


@pytest.mark.certifies(72, 84)
@pytest.mark.parametrize("state", STATES)
def test_a_drain_lets_go_as_soon_as_no_handler_runs_and_for_good(state: State) -> None:
    caller = STATES[state]()
    caller.step(signals.Drain())
    caller.step(signals.Drain())
    assert state is not State.RUNNING or caller.releases == 0, "what runs may end"
    caller.quiet()
    assert (caller.consumer.state, caller.consumer.held) == (State.DETACHED, 0)
    assert caller.releases == caller.attaches and caller.timers == {}
    for signal in (signals.Unquiesce(), signals.Lift("earlier"), signals.Detach()):
        assert caller.step(signal) == []
    assert caller.attach() == [signals.Release()], "an attach that was under way"


@pytest.mark.certifies(39, 72)
def test_a_deferral_is_no_reason_to_stay() -> None:
    caller = running()
    caller.ended(Defer("busy"))
    caller.quiet()
    assert caller.step(signals.Drain()) == [signals.StopTimer(RESUME), signals.Release()]
    caller = running()
    caller.step(signals.Drain())
    caller.ended(Defer("busy"))
    assert caller.settled() == [signals.StopTimer(RESUME), signals.Release()]


@pytest.mark.certifies(84)
def test_a_drain_that_is_cut_hands_back_first_and_lets_go_then() -> None:
    caller = running()
    caller.step(signals.Drain())
    abandon, settle = caller.step(signals.Cut())
    assert isinstance(abandon, signals.Abandon) and isinstance(settle, signals.Settle)
    assert positions(settle.verdicts) == [1, 2, 3]
    assert caller.settled() == [signals.Release()]
