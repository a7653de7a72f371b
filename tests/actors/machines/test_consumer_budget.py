"""A consumer's use of the budget, and its deferrals."""

from __future__ import annotations

import pytest
from consumer_caller import FULL, PROBE, Caller, letter, positions

from actors.delivery import BUDGET, Dead, Defer, HandBack, Nak, Outcome
from actors.machines import signals
from actors.machines.budget import OVERSPENT
from actors.machines.consumer import RESUME, RETRY_PULL, State


@pytest.fixture
def caller() -> Caller:
    return Caller()


def two_partitions(caller: Caller) -> None:
    """Attached, `a` running with 1 and 3, `b` waiting with 2."""
    caller.probed(letter(1, "a", at=1), letter(2, "b", at=2), letter(3, "a", at=3))


# -- the budget -----------------------------------------------------------------------


@pytest.mark.certifies(43)
@pytest.mark.parametrize("outcome", [Nak("no"), Defer("no")])
def test_the_last_delivery_becomes_a_dead_letter_whatever_gave_it_back(
    outcome: Outcome, caller: Caller
) -> None:
    caller.probed(letter(9))
    caller.ended()
    caller.pulled(letter(1, count=BUDGET), letter(2, count=BUDGET - 1), letter(3, count=None))
    caller.ended(outcome)
    assert caller.verdicts[f"1/{BUDGET}"] == Dead("no")
    assert not isinstance(caller.verdicts[f"2/{BUDGET - 1}"], Dead)
    assert not isinstance(caller.verdicts["3/None"], Dead)


@pytest.mark.certifies(43, 84)
def test_a_message_that_was_only_handed_back_runs_out_of_deliveries_too(caller: Caller) -> None:
    two_partitions(caller)
    caller.step(signals.Detach())
    caller.quiet()
    caller.probed(letter(4, "a", at=1), letter(5, "b", at=2, count=BUDGET))
    caller.step(signals.Hold("run"))
    caller.ended()
    assert isinstance(caller.verdicts[f"5/{BUDGET}"], Dead)


@pytest.mark.certifies(43)
@pytest.mark.field("C16")
def test_a_message_beyond_its_budget_dies_unworked(caller: Caller) -> None:
    """Its 25th run ended with the process: nobody gave it back, and it is not run again."""
    caller.attach()
    worn = letter(1, count=BUDGET + 1)
    discard, pull = caller.pulled(worn)
    assert isinstance(discard, signals.Discard) and pull == PROBE
    ((delivery, verdict),) = discard.verdicts
    assert delivery == worn.delivery and verdict == Dead(OVERSPENT)
    assert "process" in OVERSPENT
    caller.pulled(letter(2, count=BUDGET))
    assert caller.ran[0].letters == (letter(2, count=BUDGET),), "the 25th delivery is still a run"


@pytest.mark.certifies(43, 46)
def test_the_worn_out_die_beside_the_drain_and_under_a_brake_too(caller: Caller) -> None:
    caller.probed(letter(1), letter(2, count=BUDGET + 5))
    assert [one.delivery.position for one in caller.ran[0].letters] == [1]
    caller.ended()
    caller.step(signals.Hold("run"))
    caller.pulled(letter(3, count=BUDGET + 1), letter(4))
    assert isinstance(caller.verdicts[f"3/{BUDGET + 1}"], Dead)
    assert caller.verdicts["4/1"] == HandBack()


def test_failures_of_a_message_that_died_unworked_are_forgotten(caller: Caller) -> None:
    """Its last delivery was lost on the way: the one after that is beyond the budget."""
    caller.probed(letter(1, count=BUDGET - 1))
    caller.ended(Nak("boom"))
    caller.pulled(letter(1, count=BUDGET + 1))
    assert len(caller.consumer._failures) == 0


def test_failures_of_a_message_that_is_gone_are_forgotten(caller: Caller) -> None:
    """A dead letter may come of a hand-back: its failures must not stay in memory."""
    caller.probed(letter(1, count=BUDGET - 1))
    caller.ended(Nak("boom"))
    caller.pulled(letter(2, "b", at=1))
    caller.pulled(letter(1, count=BUDGET, at=2))
    caller.step(signals.Hold("run"))
    caller.ended()
    assert isinstance(caller.verdicts[f"1/{BUDGET}"], Dead)
    assert len(caller.consumer._failures) == 0


@pytest.mark.certifies(51, 52, 53, 55)
def test_a_partition_states_the_smallest_headroom_of_its_messages(caller: Caller) -> None:
    caller.probed(letter(1, count=3), letter(2, count=BUDGET), letter(3, count=None))
    partition = caller.ran[0]
    assert [one.headroom for one in partition.letters] == [BUDGET - 3, 0, None]
    assert (partition.headroom, partition.attempt) == (0, BUDGET)


@pytest.mark.certifies(56)
def test_a_count_past_the_budget_is_no_negative_headroom() -> None:
    assert letter(1, count=BUDGET + 5).headroom == 0
    assert letter(1, count=None).headroom is None


# -- deferral -------------------------------------------------------------------------


@pytest.mark.certifies(39, 40, 84)
def test_a_deferral_hands_back_its_own_mail_then_what_waits_behind_it(caller: Caller) -> None:
    two_partitions(caller)
    effects = caller.ended(Defer("busy", retry_after_s=7.0))
    assert effects[0] == signals.StartTimer(RESUME, 7.0)
    assert isinstance(effects[1], signals.Settle)
    assert positions(effects[1].verdicts) == [1, 3, 2]
    assert set(caller.verdicts.values()) == {HandBack()}
    assert caller.settled() == []
    assert caller.consumer.state is State.RESTING


@pytest.mark.certifies(39)
@pytest.mark.parametrize("way", ["timer", "unquiesce", "lift", "early timer"])
def test_a_deferred_consumer_goes_on(way: str, caller: Caller) -> None:
    if way == "lift":
        caller.step(signals.Hold("other"))
        caller.step(signals.Lift("other"))
    caller.probed(letter(1))
    caller.ended(Defer("busy"))
    if way == "early timer":
        caller.fired(RESUME)
        assert caller.settled() == [FULL]
        return
    caller.settled()
    if way == "timer":
        assert caller.fired(RESUME) == [FULL]
    elif way == "unquiesce":
        assert caller.step(signals.Unquiesce()) == [signals.StopTimer(RESUME), FULL]
    else:
        caller.step(signals.Hold("run"))
        assert caller.step(signals.Lift("run")) == [signals.StopTimer(RESUME), FULL]


@pytest.mark.parametrize("after_s", [-1.0, 0.0, float("nan")])
def test_a_deferral_for_no_time_resumes_at_once(after_s: float, caller: Caller) -> None:
    caller.probed(letter(1))
    assert caller.ended(Defer("busy", after_s))[0] == signals.StartTimer(RESUME, 0.0)


def test_lifting_what_was_not_held_does_not_end_a_deferral(caller: Caller) -> None:
    caller.probed(letter(1))
    caller.ended(Defer("busy"))
    caller.settled()
    assert caller.step(signals.Lift("nobody")) == []
    assert RESUME in caller.timers


def test_a_timer_of_an_ended_deferral_means_nothing(caller: Caller) -> None:
    caller.attach()
    assert caller.consumer.step(signals.Fired(RESUME)) == []
    assert caller.consumer.step(signals.Fired(RETRY_PULL)) == []
    assert caller.consumer.step(signals.Fired("somebody's")) == []
