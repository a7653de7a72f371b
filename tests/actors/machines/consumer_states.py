"""A consumer in each of its states, for what may land in any of them."""

from __future__ import annotations

from collections.abc import Callable

from consumer_caller import SLOW, Caller, letter

from actors.delivery import BUDGET, Nak
from actors.machines import signals
from actors.machines.consumer import State


def attached() -> Caller:
    caller = Caller()
    caller.attach(SLOW)
    return caller


def resting() -> Caller:
    caller = attached()
    caller.step(signals.Hold("earlier"))
    caller.quiet()
    return caller


def collecting() -> Caller:
    caller = attached()
    caller.pulled(letter(2, "b", at=2))
    caller.pulled(letter(3, "a", at=3))
    return caller


def backing_off() -> Caller:
    caller = attached()
    caller.pull_failed()
    return caller


def running() -> Caller:
    caller = Caller()
    caller.probed(letter(1, "a", at=1), letter(2, "b", at=2), letter(3, "c", at=3))
    return caller


def settling() -> Caller:
    """Its dead letter is not stored yet, and two partitions wait."""
    caller = Caller()
    caller.probed(letter(2, "b", at=2), letter(1, "a", at=1, count=BUDGET), letter(3, "c", at=3))
    caller.ended(Nak("boom"))
    return caller


STATES: dict[State, Callable[[], Caller]] = {
    State.DETACHED: Caller,
    State.RESTING: resting,
    State.PULLING: attached,
    State.COLLECTING: collecting,
    State.BACKING_OFF: backing_off,
    State.RUNNING: running,
    State.SETTLING: settling,
}
