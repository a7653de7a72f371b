"""The consumer of one mailbox: fetch, collect, dispatch, settle - and let go when told to.

The caller's duties:
1. Step one input at a time and carry out the effects in their order, before the next step.
2. Answer every `Pull` with exactly one `Pulled` or `PullFailed`, also after a `Recall`.
3. Answer every `Run` with one `Ended` that carries its number, and every `Settle` that is to
   be confirmed with one `Settled`, however long the broker takes.
4. Give `Pulled` the options as they are now: they are read once the first message is in hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from actors.delivery import (
    Ack,
    Dead,
    Defer,
    Delivery,
    Done,
    HandBack,
    Letter,
    Nak,
    Outcome,
    Partition,
    Partly,
)
from actors.machines.budget import OVERSPENT, Failures, give_back, overspent
from actors.machines.collection import Collection
from actors.machines.signals import (
    Abandon,
    Attached,
    Cut,
    Detach,
    Discard,
    Drain,
    Effect,
    Ended,
    Fired,
    Hold,
    IllegalInput,
    Input,
    Lift,
    Pause,
    Pulled,
    PullFailed,
    Quiesce,
    Recall,
    Release,
    Run,
    Settle,
    Settled,
    StartTimer,
    State,
    StopTimer,
    Unquiesce,
    Verdicts,
)

PULL_RETRY_S: Final = 1.0
"""Pause after a fetch that the broker did not answer."""

RETRY_PULL: Final = "retry_pull"
RESUME: Final = "resume"

_CONFIRMED: Final = (HandBack, Dead)
_OVER: Final = (Done, Dead)


__all__ = ["PULL_RETRY_S", "RESUME", "RETRY_PULL", "Consumer", "IllegalInput", "State"]


class Consumer:
    """The machine. `step` is its only way in; the properties are for those who look."""

    def __init__(self) -> None:
        self.state = State.DETACHED
        self.quiesced = False
        self.deferred = False
        self.paused = False
        self.holds: dict[str, None] = {}
        self.attached = False
        self._bound = False  # the attachment is not released yet
        self._recalled = False
        self._unsettled = 0
        self._leaving = False
        self._collection = Collection()
        self._waiting: list[Partition] = []
        self._running: Partition | None = None
        self._number = 0
        self._failures = Failures()
        self._effects: list[Effect] = []

    @property
    def braked(self) -> bool:
        """True: no pull may stay outstanding, and nothing may start."""
        brakes = self.quiesced or self.deferred or self.paused or bool(self.holds)
        return brakes or not self.attached

    @property
    def running(self) -> Partition | None:
        return self._running

    @property
    def held(self) -> int:
        """Messages in hand: collected, running, or waiting for their turn."""
        partitions = [*self._waiting, *([self._running] if self._running else [])]
        return len(self._collection) + sum(len(partition.letters) for partition in partitions)

    def step(self, given: Input) -> list[Effect]:
        """Take an input; the effects, to be carried out in this order."""
        handler = _ALWAYS.get(type(given)) or _TABLE.get((self.state, type(given)))
        if handler is None:
            raise IllegalInput(f"{type(given).__name__} while {self.state.value}")
        handler(self, given)
        effects, self._effects = self._effects, []
        return effects

    # -- the cycle --------------------------------------------------------------------

    def _on_attached(self, given: Attached) -> None:
        if self._bound:  # also after a Detach whose pull has not answered yet
            raise IllegalInput("Attached before the last attachment was released")
        # A quiesce of an earlier attachment is stale. Holds are not: they are taken first.
        self.attached, self._bound = True, True
        self.quiesced = self.deferred = False
        self._collection.begin(given.options)
        self._failures = Failures(given.backoff)
        if self.state is State.DETACHED:  # else the last attachment's handler ends first
            self._advance()

    def _on_pulled(self, given: Pulled) -> None:
        self._recalled = False
        letters = self._without_the_worn_out(given)
        self._collection.add(letters, given.now, given.options)
        if not self._collection:
            self._advance()
        elif self.braked:
            self._hand_back_collection()
        elif pull := self._collection.next_pull(given.now):
            self._do(pull)
            self.state = State.COLLECTING
        else:
            self._dispatch()

    def _without_the_worn_out(self, given: Pulled) -> list[Letter]:
        """Put aside what nobody will work: what cannot be read is acknowledged, and what has
        been handed out more often than its budget allows - its last runs ended with their
        process - becomes a dead letter unworked."""
        gone: Verdicts = [(delivery, Done()) for delivery in given.spoiled]
        kept = []
        for letter in given.letters:
            if overspent(letter.delivery):
                self._failures.forget(letter.delivery.position)
                gone.append((letter.delivery, Dead(reason=OVERSPENT)))
            else:
                kept.append(letter)
        if gone:
            self._do(Discard(tuple(gone)))
        return kept

    def _on_pull_failed(self, _: PullFailed) -> None:
        self._recalled = False
        if self._collection and self.braked:
            self._hand_back_collection()
        elif self._collection:
            self._dispatch()
        elif self.braked:
            self._advance()
        else:
            self._do(StartTimer(RETRY_PULL, PULL_RETRY_S))
            self.state = State.BACKING_OFF

    def _on_ended(self, given: Ended) -> None:
        if given.number != self._number or self._running is None:
            return  # the handler of a run that was cut: its mail went back without it
        partition, self._running = self._running, None
        verdicts = self._verdicts(partition, given.outcome)
        if self.braked:
            verdicts += self._undispatched()
        self._settle(verdicts)
        self._proceed()

    def _on_settled(self, _: Settled) -> None:
        self._unsettled -= 1
        self._proceed()

    def _proceed(self) -> None:
        """After a settlement: go on, unless one is still to be confirmed."""
        if self._unsettled:
            self.state = State.SETTLING
        elif self._running is not None:
            if not self.attached:
                self._unbind()
            self.state = State.RUNNING
        elif self._waiting and self.braked:
            self._settle(self._undispatched())
            self._proceed()
        elif self._waiting:
            self._run_next()
        else:
            self._advance()

    def _on_fired(self, given: Fired) -> None:
        if given.timer == RESUME and self.deferred:
            self.deferred = False
            self._let_go()
        elif given.timer == RETRY_PULL and self.state is State.BACKING_OFF:
            self._advance()

    # -- brakes -----------------------------------------------------------------------

    def _on_quiesce(self, _: Quiesce) -> None:
        if self.attached:
            self.quiesced = True
            self._brake()

    def _on_unquiesce(self, _: Unquiesce) -> None:
        self.quiesced = False
        self._end_deferral()
        self._let_go()

    def _on_hold(self, given: Hold) -> None:
        self.holds[given.name] = None
        self._brake()

    def _on_lift(self, given: Lift) -> None:
        if given.name in self.holds:
            del self.holds[given.name]
            self._end_deferral()
            self._let_go()

    def _on_pause(self, _: Pause) -> None:
        self.paused = True
        self._brake()

    def _on_drain(self, _: Drain) -> None:
        self.paused = self._leaving = True
        self._brake()

    def _on_cut(self, _: Cut) -> None:
        if self._running is None:
            return
        self._do(Abandon(self._number))
        self._number += 1
        self._waiting.insert(0, self._running)
        self._running = None
        self._settle(self._undispatched("the node stopped before the handler ended"))
        self._proceed()

    def _on_detach(self, _: Detach) -> None:
        if not self.attached:
            return
        self.attached = False
        self.holds.clear()
        self._end_deferral()
        if self._running is None:
            self._brake()
            return
        # The handler's own outcome still applies; what it has not reached goes back now.
        if self._waiting or self._collection:
            self._settle(self._undispatched())
        self._proceed()

    def _brake(self) -> None:
        """A brake landed: end an outstanding pull, or find the rest that it asks for."""
        if self.state in (State.PULLING, State.COLLECTING):
            if not self._recalled:
                self._recalled = True
                self._do(Recall())
        elif self.state is State.BACKING_OFF:
            self._do(StopTimer(RETRY_PULL))
            self._advance()
        elif self.state is State.RESTING:
            self._advance()

    def _let_go(self) -> None:
        """A brake was lifted: go on, if it was the last and nothing else is going on."""
        if self.state is State.RESTING and not self.braked:
            self._advance()

    def _end_deferral(self) -> None:
        if self.deferred:
            self.deferred = False
            self._do(StopTimer(RESUME))

    # -- pieces -----------------------------------------------------------------------

    def _advance(self) -> None:
        """Nothing is outstanding and no partition in hand: what next?"""
        if self._leaving:
            self.attached = False
            self._end_deferral()
        if self._collection and self.braked:
            self._hand_back_collection()
        elif self._collection:
            self._dispatch()
        elif not self.attached:
            self._unbind()
            self.state = State.DETACHED
        elif self.braked:
            self.state = State.RESTING
        else:
            self._do(self._collection.first_pull())
            self.state = State.PULLING

    def _unbind(self) -> None:
        if self._bound:
            self._bound = False
            self._do(Release())

    def _dispatch(self) -> None:
        self._waiting = list(self._collection.take())
        self._run_next()

    def _run_next(self) -> None:
        self._running = self._waiting.pop(0)
        self._number += 1
        self._do(Run(self._number, self._running))
        self.state = State.RUNNING

    def _settle(self, verdicts: Verdicts) -> None:
        """A hand-back and a dead letter are waited for; what only has to be said is not."""
        confirmed = False
        for delivery, verdict in verdicts:
            confirmed = confirmed or isinstance(verdict, _CONFIRMED)
            if isinstance(verdict, _OVER):
                self._failures.forget(delivery.position)
        self._do(Settle(tuple(verdicts), confirmed))
        self._unsettled += confirmed

    def _hand_back_collection(self) -> None:
        """A brake landed while this was collected: all of it goes back, by partition."""
        self._settle(self._undispatched())
        self._proceed()

    def _undispatched(self, reason: str = "the seat let go before this was worked") -> Verdicts:
        """Back in partition order. Being drained was the delivery: each costs exactly one."""
        waiting, self._waiting = [*self._waiting, *self._collection.take_all()], []
        letters = [letter for partition in waiting for letter in partition.letters]
        return [(letter.delivery, give_back(letter.delivery, reason)) for letter in letters]

    def _verdicts(self, partition: Partition, outcome: Outcome | Partly) -> Verdicts:
        if isinstance(outcome, Partly):
            done = [letter.delivery for letter in partition.letters if letter.id in outcome.done]
            rest = [
                letter.delivery for letter in partition.letters if letter.id not in outcome.done
            ]
            return self._verdicts_of(done, Ack()) + self._verdicts_of(rest, outcome.rest)
        return self._verdicts_of([letter.delivery for letter in partition.letters], outcome)

    def _verdicts_of(self, deliveries: list[Delivery], outcome: Outcome) -> Verdicts:
        match outcome:
            case Ack():
                return [(d, Done()) for d in deliveries]
            case Nak(reason=reason):
                failed = self._failures.failed
                return [(d, give_back(d, reason, failed(d.position))) for d in deliveries]
            case Defer(reason=reason, retry_after_s=after_s):
                self.deferred = self.attached
                if self.deferred:
                    self._do(StartTimer(RESUME, max(0.0, after_s)))
                return [(d, give_back(d, reason)) for d in deliveries]

    def _do(self, effect: Effect) -> None:
        self._effects.append(effect)


Handler: TypeAlias = Callable[[Consumer, Any], None]

_ALWAYS: Final[dict[type, Handler]] = {
    Attached: Consumer._on_attached,
    Ended: Consumer._on_ended,
    Fired: Consumer._on_fired,
    Quiesce: Consumer._on_quiesce,
    Unquiesce: Consumer._on_unquiesce,
    Hold: Consumer._on_hold,
    Lift: Consumer._on_lift,
    Pause: Consumer._on_pause,
    Drain: Consumer._on_drain,
    Cut: Consumer._on_cut,
    Detach: Consumer._on_detach,
}
"""Inputs that may come at any time: brakes, timers, and the ends of handlers."""

_TABLE: Final[dict[tuple[State, type], Handler]] = {
    (State.PULLING, Pulled): Consumer._on_pulled,
    (State.COLLECTING, Pulled): Consumer._on_pulled,
    (State.PULLING, PullFailed): Consumer._on_pull_failed,
    (State.COLLECTING, PullFailed): Consumer._on_pull_failed,
    (State.SETTLING, Settled): Consumer._on_settled,
}
"""Answers of the broker: each only where it was asked for."""
