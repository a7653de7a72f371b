"""One mailbox's consumer, line by line of the contract: fetch, collect, dispatch, settle."""

from __future__ import annotations

import pytest
from consumer_caller import BOX, SLOW, SWIFT, Caller, letter, positions

from actors.delivery import (
    BUDGET,
    Ack,
    BatchOptions,
    Dead,
    Defer,
    Delivery,
    Done,
    HandBack,
    Nak,
    Outcome,
    Retry,
)
from actors.machines import signals
from actors.machines.consumer import IDLE_WAIT_S, PULL_RETRY_S, RESUME, RETRY_PULL, State


@pytest.fixture
def caller() -> Caller:
    return Caller()


def two_partitions(caller: Caller) -> None:
    """Attached, `a` running with 1 and 3, `b` waiting with 2."""
    caller.attach()
    caller.pulled(letter(1, "a", at=1), letter(2, "b", at=2), letter(3, "a", at=3))


# -- fetching and collecting ----------------------------------------------------------


@pytest.mark.certifies(34, 35)
def test_nothing_is_fetched_before_the_mailbox_is_attached(caller: Caller) -> None:
    for given in (signals.Unquiesce(), signals.Lift("x"), signals.Fired(RETRY_PULL)):
        assert caller.step(given) == []
    assert caller.attach() == [signals.Pull(SWIFT.cap, IDLE_WAIT_S)]


@pytest.mark.certifies(34)
def test_a_pull_that_brought_nothing_is_followed_by_another(caller: Caller) -> None:
    caller.attach()
    assert caller.pulled() == [signals.Pull(20, IDLE_WAIT_S)]


@pytest.mark.certifies(43)
@pytest.mark.field("C16")
def test_a_message_beyond_its_budget_dies_unworked(caller: Caller) -> None:
    """Its 25th run ended with the process: nobody gave it back, and it is not run again."""
    caller.attach()
    worn, fresh = letter(1, count=BUDGET + 1), letter(2, count=BUDGET)
    pulled = signals.Pulled((worn, fresh), now=0.0, options=SWIFT)
    discard, run = caller.consumer.step(pulled)
    assert isinstance(discard, signals.Discard) and isinstance(run, signals.Run)
    ((delivery, verdict),) = discard.verdicts
    assert delivery == worn.delivery and isinstance(verdict, Dead)
    assert "process" in verdict.reason
    assert run.partition.letters == (fresh,), "the 25th delivery is still a run"


@pytest.mark.certifies(34, 95)
def test_nothing_is_fetched_while_a_handler_runs_or_its_mail_is_settled(caller: Caller) -> None:
    caller.attach()
    assert [type(effect) for effect in caller.pulled(letter(1))] == [signals.Run]
    assert [type(effect) for effect in caller.ended()] == [signals.Settle]
    assert caller.settled() == [signals.Pull(20, IDLE_WAIT_S)]


@pytest.mark.certifies(74)
def test_the_linger_is_that_of_the_first_message_and_does_not_slide(caller: Caller) -> None:
    caller.attach(SLOW)
    caller.now = 100.0
    assert caller.pulled(letter(1)) == [signals.Pull(19, 5.0)]
    caller.now = 102.0
    assert caller.pulled(letter(2)) == [signals.Pull(18, 3.0)]
    caller.now = 104.5
    assert caller.pulled(letter(3)) == [signals.Pull(17, 0.5)]
    caller.now = 105.0
    caller.pulled()
    assert [len(partition.letters) for partition in caller.ran] == [3]


@pytest.mark.certifies(74, 76)
def test_a_drain_that_has_reached_its_cap_does_not_wait(caller: Caller) -> None:
    caller.attach(BatchOptions(max_batch=2, linger_s=60.0))
    caller.pulled(letter(1), letter(2))
    assert [len(partition.letters) for partition in caller.ran] == [2]


@pytest.mark.certifies(76)
def test_a_larger_backlog_is_a_row_of_capped_drains(caller: Caller) -> None:
    assert caller.attach(BatchOptions(max_batch=2)) == [signals.Pull(2, IDLE_WAIT_S)]
    caller.pulled(letter(1), letter(2))
    caller.ended()
    assert caller.settled() == [signals.Pull(2, IDLE_WAIT_S)]


@pytest.mark.certifies(75, 76)
@pytest.mark.parametrize("asked", [-1, 0, 1, 100, 101, 10**9])
def test_caps_and_lingers_out_of_range_are_clamped(asked: int, caller: Caller) -> None:
    options = BatchOptions(max_batch=asked, linger_s=float(asked))
    assert options.cap == min(100, max(1, asked))
    assert options.window_s == min(60.0, max(0.0, asked))
    assert BatchOptions(linger_s=float("nan")).window_s == 0.0
    assert BatchOptions(linger_s=float("inf")).window_s == 60.0


@pytest.mark.certifies(77)
def test_options_are_read_once_the_first_message_is_in_hand(caller: Caller) -> None:
    caller.attach(SWIFT)
    caller.options = BatchOptions(max_batch=4, linger_s=2.0)
    assert caller.pulled(letter(1)) == [signals.Pull(3, 2.0)]
    caller.options = BatchOptions(max_batch=100, linger_s=60.0)  # for the next drain
    caller.now = 1.0
    assert caller.pulled(letter(2)) == [signals.Pull(2, 1.0)]


@pytest.mark.certifies(87)
def test_without_a_linger_what_was_there_still_makes_one_turn(caller: Caller) -> None:
    caller.attach()
    caller.pulled(letter(1), letter(2), letter(3))
    assert [len(partition.letters) for partition in caller.ran] == [3]


@pytest.mark.certifies(46)
def test_an_unreadable_message_is_dropped_and_the_others_run(caller: Caller) -> None:
    spoiled = Delivery(BOX, b"\xff", 1, 2, "2/1")
    caller.attach()
    effects = caller.pulled(letter(1), letter(3), spoiled=[spoiled])
    assert effects[0] == signals.Discard(((spoiled, Done()),))
    assert [one.delivery.position for one in caller.ran[0].letters] == [1, 3]


@pytest.mark.certifies(46)
def test_only_unreadable_mail_leads_to_the_next_pull(caller: Caller) -> None:
    spoiled = Delivery(BOX, b"\xff", 1, 1, "1/1")
    caller.attach()
    assert caller.pulled(spoiled=[spoiled]) == [
        signals.Discard(((spoiled, Done()),)),
        signals.Pull(20, IDLE_WAIT_S),
    ]


@pytest.mark.certifies(50)
def test_a_pull_that_failed_is_tried_again_after_a_pause(caller: Caller) -> None:
    caller.attach()
    assert caller.pull_failed() == [signals.StartTimer(RETRY_PULL, PULL_RETRY_S)]
    assert caller.fired(RETRY_PULL) == [signals.Pull(20, IDLE_WAIT_S)]


@pytest.mark.certifies(50)
def test_a_failed_pull_during_collection_lets_what_was_collected_run(caller: Caller) -> None:
    caller.attach(SLOW)
    caller.pulled(letter(1))
    caller.pull_failed()
    assert [len(partition.letters) for partition in caller.ran] == [1]


# -- dispatch -------------------------------------------------------------------------


@pytest.mark.certifies(78, 79, 81)
def test_partitions_run_one_after_another_the_oldest_conversation_first(caller: Caller) -> None:
    caller.attach()
    caller.pulled(letter(1, "hot", at=5), letter(2, "old", at=1), letter(3, "hot", at=9))
    assert [partition.key for partition in caller.ran] == ["old"]
    caller.ended()
    assert [partition.key for partition in caller.ran] == ["old"]  # its mail is not settled yet
    caller.settled()
    assert [partition.key for partition in caller.ran] == ["old", "hot"]


@pytest.mark.certifies(79)
def test_a_partition_is_acknowledged_once_its_handler_returned(caller: Caller) -> None:
    two_partitions(caller)
    assert caller.verdicts == {}
    caller.ended()
    assert caller.verdicts == {"1/1": Done(), "3/1": Done()}


@pytest.mark.certifies(80)
@pytest.mark.parametrize("first", [Ack(), Nak("boom")])
def test_a_failing_partition_settles_its_own_mail_only(first: Outcome, caller: Caller) -> None:
    two_partitions(caller)
    caller.ended(first)
    caller.settled()
    caller.ended(Nak("no"))
    assert type(caller.verdicts["1/1"]) is type(caller.verdicts["3/1"])
    assert caller.verdicts["2/1"] == Retry(1.0)
    assert [partition.key for partition in caller.ran] == ["a", "b"]


@pytest.mark.certifies(36)
def test_an_outcome_is_an_ack_a_nak_or_a_deferral(caller: Caller) -> None:
    made = []
    for outcome in (Ack(), Nak("failed"), Defer("later")):
        caller = Caller()
        caller.attach()
        caller.pulled(letter(1))
        caller.ended(outcome)
        made.append(caller.verdicts["1/1"])
    assert made == [Done(), Retry(1.0), HandBack()]


@pytest.mark.certifies(37)
def test_backoff_doubles_with_failures_and_not_with_deliveries(caller: Caller) -> None:
    caller.attach()
    waits = []
    for count in range(3, 11):  # the first two deliveries were hand-offs
        caller.pulled(letter(1, count=count))
        caller.ended(Nak("boom"))
        verdict = caller.verdicts[f"1/{count}"]
        assert isinstance(verdict, Retry)
        waits.append(verdict.delay_s)
        caller.settled()
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.certifies(37)
def test_another_attachment_does_not_know_of_earlier_failures(caller: Caller) -> None:
    caller.attach()
    for count in (1, 2):
        caller.pulled(letter(1, count=count))
        caller.ended(Nak("boom"))
        caller.settled()
    caller.step(signals.Detach())
    caller.quiet()
    caller.attach()
    caller.pulled(letter(1, count=3))
    caller.ended(Nak("boom"))
    assert caller.verdicts["1/3"] == Retry(1.0)


# -- the budget -----------------------------------------------------------------------


@pytest.mark.certifies(43)
@pytest.mark.parametrize("outcome", [Nak("no"), Defer("no")])
def test_the_last_delivery_becomes_a_dead_letter_whatever_gave_it_back(
    outcome: Outcome, caller: Caller
) -> None:
    caller.attach()
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
    caller.attach()
    caller.pulled(letter(4, "a", at=1), letter(5, "b", at=2, count=BUDGET))
    caller.step(signals.Hold("run"))
    caller.ended()
    assert isinstance(caller.verdicts[f"5/{BUDGET}"], Dead)


def test_failures_of_a_message_that_is_gone_are_forgotten(caller: Caller) -> None:
    """A dead letter may come of a hand-back: its failures must not stay in memory."""
    caller.attach()
    caller.pulled(letter(1, count=BUDGET - 1))
    caller.ended(Nak("boom"))
    caller.settled()
    caller.pulled(letter(2, "b", at=1), letter(1, count=BUDGET, at=2))
    caller.step(signals.Hold("run"))
    caller.ended()
    assert isinstance(caller.verdicts[f"1/{BUDGET}"], Dead)
    assert len(caller.consumer._failures) == 0


@pytest.mark.certifies(51, 52, 53, 55)
def test_a_partition_states_the_smallest_headroom_of_its_messages(caller: Caller) -> None:
    caller.attach()
    caller.pulled(letter(1, count=3), letter(2, count=BUDGET), letter(3, count=None))
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
    caller.attach()
    caller.pulled(letter(1))
    caller.ended(Defer("busy"))
    if way == "early timer":
        caller.fired(RESUME)
        assert caller.settled() == [signals.Pull(20, IDLE_WAIT_S)]
        return
    caller.settled()
    if way == "timer":
        assert caller.fired(RESUME) == [signals.Pull(20, IDLE_WAIT_S)]
    elif way == "unquiesce":
        assert caller.step(signals.Unquiesce()) == [
            signals.StopTimer(RESUME),
            signals.Pull(20, IDLE_WAIT_S),
        ]
    else:
        caller.step(signals.Hold("run"))
        assert caller.step(signals.Lift("run")) == [
            signals.StopTimer(RESUME),
            signals.Pull(20, IDLE_WAIT_S),
        ]


@pytest.mark.parametrize("after_s", [-1.0, 0.0, float("nan")])
def test_a_deferral_for_no_time_resumes_at_once(after_s: float, caller: Caller) -> None:
    caller.attach()
    caller.pulled(letter(1))
    assert caller.ended(Defer("busy", after_s))[0] == signals.StartTimer(RESUME, 0.0)


def test_lifting_what_was_not_held_does_not_end_a_deferral(caller: Caller) -> None:
    caller.attach()
    caller.pulled(letter(1))
    caller.ended(Defer("busy"))
    caller.settled()
    assert caller.step(signals.Lift("nobody")) == []
    assert RESUME in caller.timers


def test_a_timer_of_an_ended_deferral_means_nothing(caller: Caller) -> None:
    caller.attach()
    assert caller.consumer.step(signals.Fired(RESUME)) == []
    assert caller.consumer.step(signals.Fired(RETRY_PULL)) == []
    assert caller.consumer.step(signals.Fired("somebody's")) == []
