"""What one drain gathers: the probe, the linger, the cap, and what exceeds it."""

from __future__ import annotations

import pytest
from consumer_caller import FULL, PROBE, SLOW, SWIFT, Caller, letter

from actors.delivery import BatchOptions, Defer, HandBack, Nak
from actors.machines import signals
from actors.machines.collection import IDLE_WAIT_S, SUSPECT, Collection
from actors.machines.signals import Pull


@pytest.fixture
def caller() -> Caller:
    return Caller()


def sizes(caller: Caller) -> list[int]:
    return [len(partition.letters) for partition in caller.ran]


# -- the linger -----------------------------------------------------------------------


@pytest.mark.certifies(74)
def test_the_linger_is_that_of_the_first_message_and_does_not_slide(caller: Caller) -> None:
    caller.attach(SLOW)
    caller.now = 100.0
    assert caller.pulled(letter(1)) == [Pull(19, 5.0)]
    caller.now = 102.0
    assert caller.pulled(letter(2)) == [Pull(18, 3.0)]
    caller.now = 104.5
    assert caller.pulled(letter(3)) == [Pull(17, 0.5)]
    caller.now = 105.0
    caller.pulled()
    assert sizes(caller) == [3]


@pytest.mark.certifies(74, 76)
def test_a_drain_that_has_reached_its_cap_does_not_wait(caller: Caller) -> None:
    caller.attach(BatchOptions(max_batch=2, linger_s=60.0))
    assert caller.pulled(letter(1)) == [Pull(1, 60.0)]
    caller.pulled(letter(2))
    assert sizes(caller) == [2]


@pytest.mark.certifies(87)
def test_without_a_linger_what_was_there_still_makes_one_turn(caller: Caller) -> None:
    caller.attach()
    assert caller.pulled(letter(1)) == [Pull(19, 0.0)]
    caller.pulled(letter(2), letter(3))
    assert sizes(caller) == [3]
    caller.ended()
    caller.pulled(letter(4), letter(5))
    assert sizes(caller) == [3, 2], "a later pull brings all that is there: nothing is asked again"


# -- the cap --------------------------------------------------------------------------


@pytest.mark.certifies(76)
def test_a_larger_backlog_is_a_row_of_capped_drains(caller: Caller) -> None:
    caller.probed(letter(1), letter(2), options=BatchOptions(max_batch=2))
    assert caller.ended()[-1] == Pull(2, IDLE_WAIT_S)
    caller.pulled(letter(3), letter(4))
    assert sizes(caller) == [2, 2]


@pytest.mark.certifies(75, 76)
@pytest.mark.parametrize("asked", [-1, 0, 1, 100, 101, 10**9])
def test_caps_and_lingers_out_of_range_are_clamped(asked: int) -> None:
    options = BatchOptions(max_batch=asked, linger_s=float(asked))
    assert options.cap == min(100, max(1, asked))
    assert options.window_s == min(60.0, max(0.0, asked))
    assert BatchOptions(linger_s=float("nan")).window_s == 0.0
    assert BatchOptions(linger_s=float("inf")).window_s == 60.0


def test_a_cap_of_one_never_asks_for_a_second(caller: Caller) -> None:
    caller.attach(BatchOptions(max_batch=1, linger_s=60.0))
    caller.pulled(letter(1))
    assert caller.ended()[-1] == Pull(1, IDLE_WAIT_S)


# -- options as they are now ----------------------------------------------------------


@pytest.mark.certifies(77)
def test_options_are_read_once_the_first_message_is_in_hand(caller: Caller) -> None:
    caller.attach(SWIFT)
    caller.options = BatchOptions(max_batch=4, linger_s=2.0)
    assert caller.pulled(letter(1)) == [Pull(3, 2.0)]
    caller.options = BatchOptions(max_batch=100, linger_s=60.0)  # for the next drain
    caller.now = 1.0
    assert caller.pulled(letter(2)) == [Pull(2, 1.0)]


@pytest.mark.certifies(76, 77)
def test_a_lowered_cap_is_that_of_the_drain_in_hand_and_the_surplus_is_the_next(
    caller: Caller,
) -> None:
    caller.probed(letter(1))
    caller.ended()
    caller.options = BatchOptions(max_batch=2)
    caller.pulled(*[letter(position) for position in range(2, 7)])
    assert sizes(caller) == [1, 2]
    assert [type(effect) for effect in caller.ended()] == [signals.Settle, signals.Run]
    caller.ended()
    assert sizes(caller) == [1, 2, 2, 1], "three drains out of one pull, none above the cap"
    assert caller.ended()[-1] == Pull(2, IDLE_WAIT_S)


@pytest.mark.certifies(77)
def test_a_raised_cap_fills_the_drain_in_hand(caller: Caller) -> None:
    """The pull was sent under the smaller cap and came full: it may have left mail behind."""
    caller.probed(letter(1), letter(2), options=BatchOptions(max_batch=2))
    caller.ended()
    caller.options = SWIFT
    assert caller.pulled(letter(3), letter(4)) == [Pull(18, 0.0)]
    caller.pulled(*[letter(position) for position in range(5, 11)])
    assert sizes(caller) == [2, 8]
    assert caller.ended()[-1] == FULL


@pytest.mark.certifies(83, 84)
@pytest.mark.parametrize("way", ["hold", "defer", "detach", "drain"])
def test_the_surplus_goes_back_behind_the_drain(way: str, caller: Caller) -> None:
    caller.probed(letter(1))
    caller.ended()
    caller.options = BatchOptions(max_batch=2)
    caller.pulled(letter(2, "a", at=2), letter(3, "b", at=3), letter(4, "c", at=0), letter(5, "d"))
    brakes = {
        "hold": signals.Hold("run"),
        "detach": signals.Detach(),
        "drain": signals.Drain(),
    }
    if way == "defer":
        caller.ended(Defer("busy"))
    else:
        caller.step(brakes[way])
        caller.ended()
    back = [receipt for receipt, verdict in caller.verdicts.items() if verdict == HandBack()]
    assert back == [*(["2/1"] if way == "defer" else []), "3/1", "4/1", "5/1"]
    caller.quiet()
    assert len(caller.ran) == 2 and caller.unanswered == []


# -- the probe ------------------------------------------------------------------------


@pytest.mark.field("C16")
def test_a_message_that_may_have_ended_its_process_is_worked_alone(caller: Caller) -> None:
    caller.attach()
    caller.pulled(letter(1, count=SUSPECT + 1))
    assert sizes(caller) == [1]
    assert caller.ended()[-1] == PROBE
    caller.pulled(letter(2, count=SUSPECT + 1))
    assert caller.ended()[-1] == PROBE, "and so on, until the mailbox has shown a healthier one"
    assert caller.pulled(letter(3, count=SUSPECT)) == [Pull(19, 0.0)]
    caller.pulled(letter(4, count=SUSPECT + 1))
    assert sizes(caller) == [1, 1, 2]
    assert caller.ended()[-1] == FULL


@pytest.mark.field("C16")
def test_a_lingering_seat_works_a_suspect_without_its_linger(caller: Caller) -> None:
    caller.attach(SLOW)
    caller.pulled(letter(1, count=SUSPECT + 1))
    assert sizes(caller) == [1]


@pytest.mark.parametrize("answer", ["nothing", "failed", "spoiled", "worn out"])
def test_what_shows_no_message_ends_no_probing(answer: str, caller: Caller) -> None:
    caller.attach()
    if answer == "nothing":
        caller.pulled()
    elif answer == "failed":
        caller.pull_failed()
        caller.fired("retry_pull")
    elif answer == "spoiled":
        caller.pulled(spoiled=[letter(1).delivery])
    else:
        caller.pulled(letter(1, count=26))
    assert caller.pull == PROBE


@pytest.mark.field("C16")
def test_every_attachment_begins_with_a_probe(caller: Caller) -> None:
    caller.probed(letter(1))
    caller.ended(Nak("boom"))
    assert caller.pull == FULL
    caller.step(signals.Detach())
    caller.quiet()
    assert caller.attach() == [PROBE]


def test_an_unknown_count_is_no_suspect(caller: Caller) -> None:
    caller.attach()
    assert caller.pulled(letter(1, count=None)) == [Pull(19, 0.0)]


def test_a_brake_between_the_probe_and_its_filling_hands_the_first_back(caller: Caller) -> None:
    caller.attach()
    caller.pulled(letter(1))
    assert caller.step(signals.Hold("run")) == [signals.Recall()]
    caller.pulled()
    assert caller.verdicts == {"1/1": HandBack()}
    caller.settled()
    assert caller.step(signals.Lift("run")) == [FULL]


def test_a_collection_alone() -> None:
    collection = Collection()
    collection.begin(BatchOptions(max_batch=3))
    assert (collection.first_pull(), len(collection)) == (PROBE, 0)
    collection.add([letter(1)], 10.0, BatchOptions(max_batch=3))
    assert collection.next_pull(10.0) == Pull(2, 0.0)
    collection.add([letter(2), letter(3)], 10.0, BatchOptions(max_batch=3))
    assert collection.next_pull(10.0) is None
    assert [len(partition.letters) for partition in collection.take()] == [3]
    assert (collection.take_all(), collection.first_pull()) == ([], Pull(3, IDLE_WAIT_S))
