"""The consumer's honest caller: it carries out every effect and checks what may be asked of one.

Its own picture of the brakes is kept from the inputs alone, so that the machine is held to
what it was told and not to what it believes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from actors.delivery import (
    BUDGET,
    Ack,
    BatchOptions,
    Dead,
    Defer,
    Delivery,
    Done,
    HandBack,
    Letter,
    Mailbox,
    Outcome,
    Partition,
    Partly,
    Verdict,
)
from actors.machines import signals
from actors.machines.batch import partitions
from actors.machines.collection import IDLE_WAIT_S, SUSPECT
from actors.machines.consumer import RESUME, Consumer

BOX = Mailbox("seat.inbox", "seat")
SWIFT = BatchOptions(max_batch=20, linger_s=0.0)
SLOW = BatchOptions(max_batch=20, linger_s=5.0)
PROBE = signals.Pull(1, IDLE_WAIT_S)
"""The first pull of an attachment."""
FULL = signals.Pull(20, IDLE_WAIT_S)
"""Any later one, where nothing is in hand."""


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
        self._leaving = self._probing = False
        self._holds: set[str] = set()
        self._cap = 1
        self._collected: list[Letter] = []
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

    def probed(self, *letters: Letter, options: BatchOptions | None = None) -> None:
        """Attach, and have the mailbox hold these: the first answers the probe."""
        self.attach(options)
        self.pulled(letters[0])
        if self.pull is not None:
            self.pulled(*letters[1:])

    def pulled(self, *letters: Letter, spoiled: Sequence[Delivery] = ()) -> list[signals.Effect]:
        assert self.pull is not None
        self.pull, self.recalled = None, False
        if not self._collected:
            self._cap = self.options.cap
        sound = [one for one in letters if (one.delivery.count or 1) <= BUDGET]
        self._collected += sound
        if sound and not self.braked:
            self._probing = self._probing and any(
                (one.delivery.count or 1) > SUSPECT for one in self._collected
            )
        self.delivered += [one.delivery for one in letters]
        self._spoiled += spoiled
        return self.step(signals.Pulled(letters, self.now, self.options, tuple(spoiled)))

    def pull_failed(self) -> list[signals.Effect]:
        assert self.pull is not None
        self.pull, self.recalled = None, False
        return self.step(signals.PullFailed())

    def ended(self, outcome: Outcome | Partly | None = None) -> list[signals.Effect]:
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
                self._probing = True
                if not self._collected:
                    self._cap = self.options.cap
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
            case signals.Drain():
                self._paused = self._leaving = True
            case signals.Detach() if self._attached:
                self._attached = self._deferred = False
                self._holds.clear()
            case signals.Fired(timer=timer) if timer == RESUME:
                self._deferred = False
            case signals.Ended(number=number, outcome=outcome) if number not in self.abandoned:
                rest = outcome.rest if isinstance(outcome, Partly) else outcome
                if isinstance(rest, Defer):
                    self._deferred = self._attached

    def _carry_out(self, effect: signals.Effect) -> None:
        match effect:
            case signals.Pull(most=most, wait_s=wait_s):
                assert self.pull is None, "one pull at a time"
                assert not self.braked, "a braked consumer issues no fetch"
                assert self.run is None, "nothing is fetched while a handler runs"
                assert not self.unsettled, "what goes back goes back first"
                if self._collected:
                    assert most + len(self._collected) == self._cap
                    assert wait_s <= self.options.window_s
                else:
                    assert (most, wait_s) == (1 if self._probing else self._cap, IDLE_WAIT_S)
                self.pull = effect
            case signals.Recall():
                assert self.pull is not None and not self.recalled, "one recall a pull"
                self.recalled = True
            case signals.Run(partition=partition):
                assert not self.braked, "nothing starts under a brake"
                assert self.run is None, "one handler at a time"
                assert not self.unsettled, "nothing starts before what goes back is back"
                assert {one.key for one in partition.letters} == {partition.key}
                self._begin_a_drain()
                assert set(partition.letters) <= set(self._drain)
                self._known([one.delivery for one in partition.letters])
                self.run = effect
                self.ran.append(partition)
            case signals.Abandon(number=number):
                assert self.run is not None and self.run.number == number
                self.abandoned.append(number)
                self.run = None
            case signals.Settle(verdicts=verdicts, confirmed=confirmed):
                self._known([delivery for delivery, _ in verdicts])
                self._in_order(positions([(d, v) for d, v in verdicts if v != Done()]))
                assert confirmed == any(isinstance(v, HandBack | Dead) for _, v in verdicts)
                self.verdicts.update({d.receipt: verdict for d, verdict in verdicts})
                self.unsettled += confirmed
                back = {delivery.receipt for delivery, _ in verdicts}
                self._collected = [o for o in self._collected if o.delivery.receipt not in back]
            case signals.Release():
                self.releases += 1
                self._attached = self._attached and not self._leaving
                assert not self._attached and self.pull is None
                assert not self.unsettled, "a release comes after what goes back"
                assert self.releases == self.attaches, "one release for each attachment"
            case signals.StartTimer(name=name, after_s=after_s):
                self.timers[name] = after_s
            case signals.StopTimer(name=name):
                del self.timers[name]
            case signals.Discard(verdicts=verdicts):
                for delivery, verdict in verdicts:
                    if delivery in self._spoiled:
                        assert verdict == Done()
                    else:
                        assert (delivery.count or 0) > BUDGET and isinstance(verdict, Dead)
                        self._known([delivery])
                        self.verdicts[delivery.receipt] = verdict

    def _known(self, deliveries: Sequence[Delivery]) -> None:
        receipts = Counter(delivery.receipt for delivery in deliveries)
        assert receipts, "an empty effect"
        unanswered = {delivery.receipt for delivery in self.unanswered}
        for receipt, times in receipts.items():
            assert times == 1 and receipt in unanswered, f"{receipt} was settled or never came"

    def _begin_a_drain(self) -> None:
        """The first run after all of the last drain had its answer: at most the cap."""
        if all(one.delivery.receipt in self.verdicts for one in self._drain):
            self._drain = self._collected[: self._cap]
            self._collected = self._collected[self._cap :]

    def _in_order(self, settled: list[int]) -> None:
        """Whatever goes back together goes back in the order of the drain's partitions, and
        then what was to be the next drain."""
        parts = [*partitions(self._drain), *partitions(self._collected)]
        order = [one.delivery.position for part in parts for one in part.letters]
        assert settled == [position for position in order if position in settled]
