"""Brakes, in every state in which they may land; and inputs that cannot come."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from consumer_caller import FULL, PROBE, SWIFT, Caller, letter
from consumer_states import STATES, attached, collecting, resting, running

from actors.delivery import Ack, Defer, HandBack, Nak
from actors.machines import signals
from actors.machines.consumer import (
    RESUME,
    RETRY_PULL,
    Consumer,
    IllegalInput,
    State,
)

BRAKES: dict[str, tuple[signals.Input, ...]] = {
    "quiesce": (signals.Quiesce(),),
    "hold": (signals.Hold("run"),),
    "two holds": (signals.Hold("run"), signals.Hold("other")),
    "pause": (signals.Pause(),),
    "drain": (signals.Drain(),),
    "detach": (signals.Detach(),),
    "cut": (signals.Cut(), signals.Detach()),
    "everything": (signals.Hold("x"), signals.Quiesce(), signals.Pause(), signals.Detach()),
}
attachments = pytest.mark.parametrize("state", [s for s in STATES if s is not State.DETACHED])


@pytest.mark.parametrize("state", STATES)
def test_the_states_are_what_their_names_say(state: State) -> None:
    assert STATES[state]().consumer.state is state


@pytest.mark.certifies(35, 65, 68, 72, 83, 84)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("brake", BRAKES)
def test_under_a_brake_nothing_starts_and_all_mail_has_one_verdict(
    state: State, brake: str
) -> None:
    caller = STATES[state]()
    ran = len(caller.ran)
    for signal in BRAKES[brake]:
        caller.step(signal)
    caller.quiet()  # the caller asserts on the way: no pull, no run, one recall, one verdict
    assert (len(caller.ran), caller.pull, caller.run, caller.unanswered) == (ran, None, None, [])
    assert caller.consumer.held == 0
    assert RETRY_PULL not in caller.timers


@pytest.mark.certifies(84)
@pytest.mark.parametrize("brake", [name for name in BRAKES if name not in ("cut", "everything")])
@pytest.mark.parametrize("outcome", [Ack(), Nak("no"), Defer("no")])
def test_a_brake_between_partitions_hands_back_the_rest_in_order(
    brake: str, outcome: Ack | Nak | Defer
) -> None:
    caller = running()
    for signal in BRAKES[brake]:
        caller.step(signal)
    caller.quiet(outcome)
    assert caller.verdicts["2/1"] == caller.verdicts["3/1"] == HandBack()
    back = [receipt for receipt, verdict in caller.verdicts.items() if verdict == HandBack()]
    late = brake == "detach"  # it does not wait for the handler: what waits goes back at once
    first = ["1/1"] if outcome == Defer("no") else []
    assert back == (["2/1", "3/1", *first] if late else [*first, "2/1", "3/1"])


@pytest.mark.certifies(83)
def test_a_brake_during_collection_hands_the_whole_drain_back_and_then_goes_on() -> None:
    caller = collecting()
    assert caller.step(signals.Hold("run")) == [signals.Recall()]
    caller.pulled(letter(4, "a", at=1))
    assert list(caller.verdicts) == ["4/1", "3/1", "2/1"]  # partition a has the oldest letter
    caller.settled()
    assert caller.step(signals.Lift("run")) == [FULL]


@pytest.mark.certifies(83)
def test_a_brake_lifted_before_the_pull_answers_lets_the_collection_go_on() -> None:
    caller = collecting()
    caller.step(signals.Quiesce())
    assert caller.step(signals.Unquiesce()) == []
    assert caller.pulled() == [signals.Pull(18, 5.0)]


def test_a_failed_pull_under_a_brake_hands_back_what_was_collected() -> None:
    caller = collecting()
    caller.step(signals.Quiesce())
    caller.pull_failed()
    assert len(caller.verdicts) == 2


@pytest.mark.certifies(34)
def test_every_brake_together_recalls_a_pull_once() -> None:
    caller = attached()
    recalls = 0
    for signal in (signals.Quiesce(), signals.Hold("x"), signals.Pause(), signals.Detach()):
        recalls += caller.step(signal).count(signals.Recall())
    assert recalls == 1


# -- what lifts what ------------------------------------------------------------------


@pytest.mark.certifies(65, 66)
def test_quiesce_is_idempotent_and_undone_at_no_cost() -> None:
    caller = running()
    assert caller.step(signals.Quiesce()) == caller.step(signals.Quiesce()) == []
    assert caller.step(signals.Unquiesce()) == []
    caller.ended()
    assert [partition.key for partition in caller.ran] == ["a", "b"]
    assert HandBack() not in caller.verdicts.values()


@pytest.mark.certifies(66, 136)
def test_unquiesce_lifts_no_hold_and_all_holds_must_lift() -> None:
    caller = attached()
    for signal in (signals.Quiesce(), signals.Hold("a"), signals.Hold("b"), signals.Hold("a")):
        caller.step(signal)
    caller.quiet()
    assert caller.step(signals.Unquiesce()) == []
    assert caller.step(signals.Lift("a")) == []
    assert caller.step(signals.Lift("b")) == [PROBE]


@pytest.mark.certifies(72)
@attachments
def test_nothing_lifts_a_pause(state: State) -> None:
    caller = STATES[state]()
    caller.step(signals.Pause())
    caller.quiet()
    for signal in (signals.Unquiesce(), signals.Lift("earlier"), signals.Fired(RESUME)):
        assert caller.step(signal) == []
    caller.step(signals.Detach())
    caller.quiet()
    assert caller.attach() == []


@pytest.mark.certifies(68, 70)
def test_a_quiesce_without_an_attachment_means_nothing() -> None:
    caller = Caller()
    caller.step(signals.Quiesce())
    assert not caller.consumer.quiesced
    assert caller.attach() == [PROBE]


@pytest.mark.certifies(68)
@attachments
def test_a_stale_quiesce_does_not_survive_a_detach(state: State) -> None:
    caller = STATES[state]()
    caller.step(signals.Quiesce())
    caller.step(signals.Detach())
    caller.quiet()
    assert caller.attach(SWIFT) == [PROBE]


@pytest.mark.certifies(137)
def test_a_hold_taken_before_the_mailbox_is_attached_stands() -> None:
    caller = Caller()
    caller.step(signals.Hold("run"))
    assert caller.attach() == []
    assert caller.step(signals.Lift("run")) == [PROBE]


@pytest.mark.certifies(67, 136)
def test_a_detach_releases_the_holds_of_its_attachment() -> None:
    caller = resting()
    assert caller.step(signals.Detach()) == [signals.Release()]
    assert caller.attach() == [PROBE]


# -- illegal inputs -------------------------------------------------------------------

ANSWERS: dict[type, tuple[signals.Input, set[State]]] = {
    signals.Pulled: (signals.Pulled((), 0.0, SWIFT), {State.PULLING, State.COLLECTING}),
    signals.PullFailed: (signals.PullFailed(), {State.PULLING, State.COLLECTING}),
    signals.Settled: (signals.Settled(), {State.SETTLING}),
    signals.Attached: (signals.Attached(SWIFT), {State.DETACHED}),
}


def picture(consumer: Consumer) -> dict[str, Any]:
    """All that a consumer knows, taken apart so that it can be compared."""
    return {
        name: copy.deepcopy(vars(value) if name in ("_failures", "_collection") else value)
        for name, value in vars(consumer).items()
    }


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_that_nobody_asked_for_raises_and_changes_nothing(
    state: State, answer: type
) -> None:
    given, legal = ANSWERS[answer]
    consumer = STATES[state]().consumer
    before = picture(consumer)
    if state in legal:
        consumer.step(given)
        return
    with pytest.raises(IllegalInput, match=answer.__name__):
        consumer.step(given)
    assert picture(consumer) == before


@pytest.mark.parametrize("state", [State.PULLING, State.COLLECTING, State.SETTLING])
def test_a_mailbox_is_not_attached_again_before_it_is_released(state: State) -> None:
    """Else the pull that is still out would belong to an attachment that nobody knows."""
    caller = STATES[state]()
    caller.step(signals.Detach())
    before = picture(caller.consumer)
    with pytest.raises(IllegalInput):
        caller.consumer.step(signals.Attached(SWIFT))
    assert picture(caller.consumer) == before


def test_what_is_no_input_raises() -> None:
    with pytest.raises(IllegalInput):
        Consumer().step(signals.Release())  # type: ignore[arg-type]


def test_the_effects_of_a_step_are_the_callers_own() -> None:
    caller = attached()
    caller.effects.clear()
    assert caller.pulled() == [PROBE]


@pytest.mark.certifies(34, 35)
@pytest.mark.parametrize("answer", ["pulled", "pull_failed"])
def test_each_pull_can_be_recalled_and_its_failure_under_a_brake_is_rest(answer: str) -> None:
    caller = attached()
    for _ in range(2):
        assert caller.step(signals.Hold("run")) == [signals.Recall()]
        assert getattr(caller, answer)() == []
        assert caller.consumer.state is State.RESTING
        assert caller.step(signals.Lift("run")) == [PROBE]
