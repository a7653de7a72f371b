"""The consumer's honest caller: it carries out every effect and checks what may be asked of one.

Its own picture of the brakes is kept from the inputs alone, so that the machine is held to
what it was told and not to what it believes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from actors.delivery import (
    Ack,
    BatchOptions,
    Defer,
    Delivery,
    Letter,
    Mailbox,
    Outcome,
    Partition,
    Verdict,
)
from actors.machines import signals
from actors.machines.batch import partitions
from actors.machines.consumer import RESUME, Consumer

BOX = Mailbox("seat.inbox", "seat")
SWIFT = BatchOptions(max_batch=20, linger_s=0.0)
SLOW = BatchOptions(max_batch=20, linger_s=5.0)


def letter(
    position: int, key: str = "a", *, at: float | None = None, count: int | None = 1
) -> Letter:
    """The message at `position`, of the conversation `key`; `at` is its timestamp."""
    delivery = Delivery(BOX, b"", count, position, receipt=f"{position}/{count}")
    return Letter(delivery, f"e{position}", key, at, event=None)


def positions(verdicts: Sequence[tuple[Delivery, Verdict]]) -> list[int]:
    return [delivery.position for delivery, _ in verdicts]


class Caller:
    """Steps a consumer and remembers what is outstanding, delivered, and settled."""

    def __init__(self) -> None:
        self.consumer = Consumer()
        self.now = 0.0
        self.options = SWIFT
        self.pull: signals.Pull | None = None
        self.recalled = False
        self.run: signals.Run | None = None
        self.abandoned: list[int] = []
        self.unsettled = 0
        self.timers: dict[str, float] = {}
        self.delivered: list[Delivery] = []
        self.verdicts: dict[str, Verdict] = {}
        self.attaches = self.releases = 0
        self.ran: list[Partition] = []
        self.effects: list[signals.Effect] = []
        self._quiesced = self._deferred = self._paused = self._attached = False
        self._holds: set[str] = set()
        self._drain: list[Letter] = []
        self._spoiled: list[Delivery] = []

    @property
    def braked(self) -> bool:
        return (
            not self._attached
            or self._quiesced
            or self._deferred
            or self._paused
            or bool(self._holds)
        )

    @property
    def unanswered(self) -> list[Delivery]:
        """Delivered and without a verdict."""
        return [one for one in self.delivered if one.receipt not in self.verdicts]

    # -- inputs -----------------------------------------------------------------------

    def step(self, given: signals.Input) -> list[signals.Effect]:
        self.effects = self.consumer.step(given)
        self._note(given)
        for effect in self.effects:
            self._carry_out(effect)
        return self.effects

    def attach(self, options: BatchOptions | None = None) -> list[signals.Effect]:
        self.options = options or self.options
        self.attaches += 1
        return self.step(signals.Attached(self.options))

    def pulled(self, *letters: Letter, spoiled: Sequence[Delivery] = ()) -> list[signals.Effect]:
        assert self.pull is not None
        self.pull, self.recalled = None, False
        self._drain = [*self._drain, *letters] if self._drain else list(letters)
        self.delivered += [one.delivery for one in letters]
        self._spoiled += spoiled
        return self.step(signals.Pulled(letters, self.now, self.options, tuple(spoiled)))

    def pull_failed(self) -> list[signals.Effect]:
        assert self.pull is not None
        self.pull, self.recalled = None, False
        return self.step(signals.PullFailed())

    def ended(self, outcome: Outcome | None = None) -> list[signals.Effect]:
        assert self.run is not None
        number, self.run = self.run.number, None
        return self.step(signals.Ended(number, outcome or Ack()))

    def settled(self) -> list[signals.Effect]:
        assert self.unsettled
        self.unsettled -= 1
        return self.step(signals.Settled())

    def fired(self, timer: str) -> list[signals.Effect]:
        del self.timers[timer]
        return self.step(signals.Fired(timer))

    def quiet(self, outcome: Outcome | None = None) -> None:
        """Answer everything that is outstanding, but a pull only where it was recalled."""
        while self.unsettled or self.run or (self.pull and self.recalled):
            if self.unsettled:
                self.settled()
            elif self.run:
                self.ended(outcome)
            else:
                self.pulled()

    # -- the caller's own picture -----------------------------------------------------

    def _note(self, given: signals.Input) -> None:
        match given:
            case signals.Attached():
                self._attached, self._quiesced, self._deferred = True, False, False
            case signals.Quiesce():
                self._quiesced = self._quiesced or self._attached
            case signals.Unquiesce():
                self._quiesced = self._deferred = False
            case signals.Hold(name=name):
                self._holds.add(name)
            case signals.Lift(name=name) if name in self._holds:
                self._holds.remove(name)
                self._deferred = False
            case signals.Pause():
                self._paused = True
            case signals.Detach() if self._attached:
                self._attached = self._deferred = False
                self._holds.clear()
            case signals.Fired(timer=timer) if timer == RESUME:
                self._deferred = False
            case signals.Ended(number=number, outcome=Defer()) if number not in self.abandoned:
                self._deferred = self._attached

    def _carry_out(self, effect: signals.Effect) -> None:
        match effect:
            case signals.Pull(most=most):
                assert self.pull is None, "one pull at a time"
                assert not self.braked, "a braked consumer issues no fetch"
                assert self.run is None, "nothing is fetched while a handler runs"
                assert most + len(self._drain) <= self.options.cap or not self._drain
                self.pull = effect
            case signals.Recall():
                assert self.pull is not None and not self.recalled, "one recall a pull"
                self.recalled = True
            case signals.Run(partition=partition):
                assert not self.braked, "nothing starts under a brake"
                assert self.run is None, "one handler at a time"
                assert {one.key for one in partition.letters} == {partition.key}
                self._known([one.delivery for one in partition.letters])
                self.run = effect
                self.ran.append(partition)
            case signals.Abandon(number=number):
                assert self.run is not None and self.run.number == number
                self.abandoned.append(number)
                self.run = None
            case signals.Settle(verdicts=verdicts):
                self._known([delivery for delivery, _ in verdicts])
                self._in_order(positions(verdicts))
                self.verdicts.update({d.receipt: verdict for d, verdict in verdicts})
                self.unsettled += 1
                if not self.unanswered:
                    self._drain = []
            case signals.Release():
                self.releases += 1
                assert not self._attached and self.pull is None
                assert self.releases == self.attaches, "one release for each attachment"
            case signals.StartTimer(name=name, after_s=after_s):
                self.timers[name] = after_s
            case signals.StopTimer(name=name):
                del self.timers[name]
            case signals.Discard(verdicts=verdicts):
                assert Counter(d for d, _ in verdicts) <= Counter(self._spoiled)

    def _known(self, deliveries: Sequence[Delivery]) -> None:
        receipts = Counter(delivery.receipt for delivery in deliveries)
        assert receipts, "an empty effect"
        unanswered = {delivery.receipt for delivery in self.unanswered}
        for receipt, times in receipts.items():
            assert times == 1 and receipt in unanswered, f"{receipt} was settled or never came"

    def _in_order(self, settled: list[int]) -> None:
        """Whatever goes back together goes back in the order of the drain's partitions."""
        order = [
            one.delivery.position
            for partition in partitions(self._drain)
            for one in partition.letters
        ]
        assert settled == [position for position in order if position in settled]
