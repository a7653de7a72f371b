"""One mailbox's consumer, line by line of the contract: fetch, dispatch, settle."""

from __future__ import annotations

import pytest
from consumer_caller import BOX, FULL, PROBE, SLOW, SWIFT, Caller, letter

from actors.delivery import (
    Ack,
    Dead,
    Defer,
    Delivery,
    Done,
    HandBack,
    Nak,
    Outcome,
    Partly,
    Retry,
)
from actors.machines import signals
from actors.machines.budget import Backoff
from actors.machines.consumer import PULL_RETRY_S, RETRY_PULL, State


@pytest.fixture
def caller() -> Caller:
    return Caller()


def two_partitions(caller: Caller) -> None:
    """Attached, `a` running with 1 and 3, `b` waiting with 2."""
    caller.probed(letter(1, "a", at=1), letter(2, "b", at=2), letter(3, "a", at=3))


# -- fetching -------------------------------------------------------------------------


@pytest.mark.certifies(34, 35)
def test_nothing_is_fetched_before_the_mailbox_is_attached(caller: Caller) -> None:
    for given in (signals.Unquiesce(), signals.Lift("x"), signals.Fired(RETRY_PULL)):
        assert caller.step(given) == []
    assert caller.attach() == [PROBE]


@pytest.mark.certifies(34)
def test_a_pull_that_brought_nothing_is_followed_by_another(caller: Caller) -> None:
    caller.attach()
    assert caller.pulled() == [PROBE]


@pytest.mark.certifies(34, 95)
def test_nothing_is_fetched_while_a_handler_runs_and_at_once_when_it_is_done(
    caller: Caller,
) -> None:
    caller.attach()
    caller.pulled(letter(1))
    assert [type(effect) for effect in caller.pulled()] == [signals.Run]
    settle, pull = caller.ended()
    assert isinstance(settle, signals.Settle) and not settle.confirmed
    assert pull == FULL


@pytest.mark.certifies(46)
def test_an_unreadable_message_is_dropped_and_the_others_run(caller: Caller) -> None:
    spoiled = Delivery(BOX, b"\xff", 1, 2, "2/1")
    caller.attach()
    caller.pulled(letter(1))
    effects = caller.pulled(letter(3), spoiled=[spoiled])
    assert effects[0] == signals.Discard(((spoiled, Done()),))
    assert [one.delivery.position for one in caller.ran[0].letters] == [1, 3]


@pytest.mark.certifies(46)
def test_only_unreadable_mail_leads_to_the_next_pull(caller: Caller) -> None:
    spoiled = Delivery(BOX, b"\xff", 1, 1, "1/1")
    caller.attach()
    assert caller.pulled(spoiled=[spoiled]) == [signals.Discard(((spoiled, Done()),)), PROBE]


@pytest.mark.certifies(50)
def test_a_pull_that_failed_is_tried_again_after_a_pause(caller: Caller) -> None:
    caller.attach()
    assert caller.pull_failed() == [signals.StartTimer(RETRY_PULL, PULL_RETRY_S)]
    assert caller.fired(RETRY_PULL) == [PROBE]


@pytest.mark.certifies(50)
def test_a_failed_pull_during_collection_lets_what_was_collected_run(caller: Caller) -> None:
    caller.attach(SLOW)
    caller.pulled(letter(1))
    caller.pull_failed()
    assert [len(partition.letters) for partition in caller.ran] == [1]


# -- dispatch -------------------------------------------------------------------------


@pytest.mark.certifies(78, 79, 81)
def test_partitions_run_one_after_another_the_oldest_conversation_first(caller: Caller) -> None:
    caller.probed(letter(1, "hot", at=5), letter(2, "old", at=1), letter(3, "hot", at=9))
    assert [partition.key for partition in caller.ran] == ["old"]
    caller.ended()
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
    caller.ended(Nak("no"))
    assert type(caller.verdicts["1/1"]) is type(caller.verdicts["3/1"])
    assert caller.verdicts["2/1"] == Retry(1.0)
    assert [partition.key for partition in caller.ran] == ["a", "b"]


@pytest.mark.certifies(36)
def test_an_outcome_is_an_ack_a_nak_or_a_deferral(caller: Caller) -> None:
    made = []
    for outcome in (Ack(), Nak("failed"), Defer("later")):
        caller = Caller()
        caller.probed(letter(1))
        caller.ended(outcome)
        made.append(caller.verdicts["1/1"])
    assert made == [Done(), Retry(1.0), HandBack()]


# -- what is waited for ---------------------------------------------------------------


@pytest.mark.certifies(40, 43)
@pytest.mark.parametrize(
    ("outcome", "count", "confirmed"),
    [
        (Ack(), 1, False),
        (Ack(), 25, False),
        (Nak("boom"), 1, False),
        (Nak("boom"), 25, True),
        (Defer("busy"), 1, True),
        (Partly(("e1",), Nak("boom")), 1, False),
        (Partly(("e1",), Defer("busy")), 1, True),
    ],
)
def test_only_what_goes_back_and_what_dies_is_waited_for(
    outcome: Outcome | Partly, count: int, confirmed: bool, caller: Caller
) -> None:
    caller.probed(letter(1, "a", at=1, count=count), letter(2, "a", at=2, count=count))
    effects = caller.ended(outcome)
    (told,) = [effect for effect in effects if isinstance(effect, signals.Settle)]
    assert told.confirmed is confirmed
    assert (caller.consumer.state is State.SETTLING) is confirmed


@pytest.mark.certifies(43)
def test_the_next_partition_waits_for_a_dead_letter_and_for_nothing_less(caller: Caller) -> None:
    caller.probed(letter(1, "a", at=1), letter(2, "b", at=2, count=25), letter(3, "c", at=3))
    caller.ended(Nak("boom"))
    assert [partition.key for partition in caller.ran] == ["a", "b"]
    caller.ended(Nak("boom"))
    assert caller.verdicts["2/25"] == Dead("boom")
    assert [partition.key for partition in caller.ran] == ["a", "b"]
    caller.settled()
    assert [partition.key for partition in caller.ran] == ["a", "b", "c"]


def test_mail_that_was_said_to_be_done_is_not_waited_for_behind_what_goes_back(
    caller: Caller,
) -> None:
    """A detach while a handler runs: its own end may come before the hand-back's answer."""
    two_partitions(caller)
    settle = caller.step(signals.Detach())[0]
    assert isinstance(settle, signals.Settle) and settle.confirmed
    caller.ended(Ack())
    assert (caller.consumer.state, caller.releases) == (State.SETTLING, 0)
    assert caller.settled() == [signals.Release()]


# -- partly ---------------------------------------------------------------------------


@pytest.mark.certifies(36, 80)
def test_what_an_earlier_turn_has_done_is_settled_whatever_becomes_of_the_rest(
    caller: Caller,
) -> None:
    caller.probed(letter(1, at=1), letter(2, at=2), letter(3, at=3, count=25))
    effects = caller.ended(Partly(("e1", "e9"), Nak("boom")))
    assert isinstance(effects[0], signals.Settle)
    assert caller.verdicts == {"1/1": Done(), "2/1": Retry(1.0), "3/25": Dead("boom")}


@pytest.mark.certifies(39)
def test_a_deferral_of_the_rest_is_a_deferral(caller: Caller) -> None:
    caller.probed(letter(1, "a", at=1), letter(2, "a", at=2), letter(3, "b", at=3))
    effects = caller.ended(Partly(("e2",), Defer("busy", 7.0)))
    assert effects[0] == signals.StartTimer("resume", 7.0)
    assert caller.verdicts == {"2/1": Done(), "1/1": HandBack(), "3/1": HandBack()}
    assert caller.settled() == []


@pytest.mark.parametrize("rest", [Ack(), Nak("boom")])
def test_all_of_it_or_nothing_of_it_may_be_done(rest: Outcome, caller: Caller) -> None:
    caller.probed(letter(1), letter(2))
    caller.ended(Partly(("e1", "e2"), rest))
    assert set(caller.verdicts.values()) == {Done()}
    caller.pulled(letter(3))
    caller.ended(Partly((), rest))
    assert caller.verdicts["3/1"] == (Done() if rest == Ack() else Retry(1.0))


# -- backoff --------------------------------------------------------------------------


@pytest.mark.certifies(37)
def test_backoff_doubles_with_failures_and_not_with_deliveries(caller: Caller) -> None:
    caller.attach()
    waits = []
    for count in range(3, 11):  # the first two deliveries were hand-offs
        caller.pulled(letter(1, count=count))
        if caller.run is None:
            caller.pulled()
        caller.ended(Nak("boom"))
        verdict = caller.verdicts[f"1/{count}"]
        assert isinstance(verdict, Retry)
        waits.append(verdict.delay_s)
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.certifies(37)
def test_an_attachment_may_hurry_its_backoff(caller: Caller) -> None:
    caller.attaches += 1
    caller.step(signals.Attached(SWIFT, Backoff(first_s=0.5, longest_s=0.75)))
    for count, wait_s in ((1, 0.5), (2, 0.75)):
        caller.pulled(letter(1, count=count))
        if caller.run is None:
            caller.pulled()
        caller.ended(Nak("boom"))
        assert caller.verdicts[f"1/{count}"] == Retry(wait_s)


@pytest.mark.certifies(37)
def test_another_attachment_does_not_know_of_earlier_failures(caller: Caller) -> None:
    caller.probed(letter(1, count=1))
    caller.ended(Nak("boom"))
    caller.pulled(letter(1, count=2))
    caller.ended(Nak("boom"))
    assert caller.verdicts["1/2"] == Retry(2.0)
    caller.step(signals.Detach())
    caller.quiet()
    caller.probed(letter(1, count=3))
    caller.ended(Nak("boom"))
    assert caller.verdicts["1/3"] == Retry(1.0)
