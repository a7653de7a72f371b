"""An actor that owns mailboxes: the shell around one consumer machine for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

import structlog
from msgspec import Struct

from actors.delivery import Delivery, Letter
from actors.machines import signals
from actors.machines.consumer import Consumer, IllegalInput
from actors.messages import (
    AttachBox,
    AttachFailed,
    BoxAttached,
    BoxReleased,
    BoxSettled,
    BoxState,
    Brake,
    Braked,
    CutShort,
    Describe,
    Description,
    Drain,
    Drained,
    Establish,
    Established,
    FetchBox,
    Fetched,
    FetchFailed,
    LetGo,
    LetGone,
    Reattach,
    RecallBox,
    ReleaseBox,
    SettleBox,
    TurnEnded,
)
from actors.ports import Consumed
from actors.system import Actor, Address, Supervision, handles
from actors.turn import TurnActor

log = structlog.get_logger(__name__)

NEVER_RESTART: Final = Supervision(on_failure="stop")
"""A turn that broke is never run again by its supervisor: its mail comes back by itself."""


class _Fired(Struct, frozen=True):
    box: str
    timer: str


class _Box(Struct):
    """One mailbox of this actor: its machine, its ticket, its running turn.

    `asker` waits to hear of the attachment, `leaver` of the release.
    """

    name: str
    consumed: Consumed
    machine: Consumer
    ticket: int = 0
    turn: Address | None = None
    asker: Address | None = None
    leaver: Address | None = None


_lives = itertools.count(1)
"""Numbers the incarnations of this process, so that answers to a former one are told apart."""


class MailActor(Actor):
    """Owns `boxes`; their mail is worked one partition at a time, each box on its own."""

    def __init__(self, name: str, gateway: Address, boxes: Mapping[str, Consumed]) -> None:
        super().__init__()
        self._name = name
        self._gateway = gateway
        self._life = next(_lives)
        self._boxes = {box: _Box(box, consumed, Consumer()) for box, consumed in boxes.items()}
        self._drainer: Address | None = None
        self._cut: list[str] = []

    # -- from outside -----------------------------------------------------------------

    @handles(Establish)
    def on_establish(self, wanted: Establish, sender: Address) -> None:
        for box in self._boxes.values():
            self._attach(box, sender, wanted.epoch, reclaim=wanted.reclaim, patient=True)

    @handles(Reattach)
    def on_reattach(self, wanted: Reattach, sender: Address) -> None:
        box = self._boxes[wanted.box]
        if box.ticket or box.asker:
            error = ValueError(f"{box.consumed.mailbox} is attached here already: detach it first")
            self.tell(sender, AttachFailed(box.name, error))
            return
        box.consumed = wanted.consumed
        self._attach(box, sender, wanted.epoch, reclaim=False, patient=False)

    def _attach(
        self, box: _Box, asker: Address, epoch: int, *, reclaim: bool, patient: bool
    ) -> None:
        box.asker = asker
        mailbox = box.consumed.mailbox
        attach = AttachBox(box.name, self._life, mailbox, epoch, reclaim, patient)
        self.tell(self._gateway, attach)

    @handles(Brake, urgent=True)
    def on_brake(self, brake: Brake, sender: Address) -> None:
        box = self._boxes[brake.box]
        before = _state_of(box)
        self._step(box, brake.signal)
        self.tell(sender, Braked(before))

    @handles(LetGo, urgent=True)
    def on_let_go(self, wanted: LetGo, sender: Address) -> None:
        box = self._boxes[wanted.box]
        if box.machine.attached:
            box.leaver = sender
            self._step(box, signals.Detach())
        else:
            self._step(box, signals.Detach())
            self.tell(sender, LetGone(was_attached=False))

    @handles(Describe, urgent=True)
    def on_describe(self, _: Describe, sender: Address) -> None:
        states = tuple(_state_of(box) for box in self._boxes.values())
        self.tell(sender, Description(self._name, states))

    @handles(Drain, urgent=True)
    def on_drain(self, _: Drain, sender: Address) -> None:
        self._drainer = sender
        for box in self._boxes.values():
            self._step(box, signals.Pause())
            self._detach_at_rest(box)
        self._report_drained()

    @handles(CutShort, urgent=True)
    def on_cut(self, _: CutShort, sender: Address) -> None:
        for box in self._boxes.values():
            if partition := box.machine.running:
                self._cut.append(partition.key)
                self._step(box, signals.Cut())
                self._detach_at_rest(box)

    # -- from the gateway -------------------------------------------------------------

    @handles(BoxAttached)
    def on_attached(self, attached: BoxAttached, sender: Address) -> None:
        box = self._boxes[attached.box]
        box.ticket = attached.ticket
        self._step(box, signals.Attached(box.consumed.options(), box.consumed.backoff))
        if self._drainer:  # the drain came while this was under way
            self._detach_at_rest(box)
        asker, box.asker = box.asker, None
        if asker and not any(other.asker == asker for other in self._boxes.values()):
            self.tell(asker, Established(self._name))

    @handles(AttachFailed)
    def on_attach_failed(self, failed: AttachFailed, sender: Address) -> None:
        box = self._boxes[failed.box]
        asker, box.asker = box.asker, None
        if asker:
            self.tell(asker, failed)

    @handles(Fetched)
    def on_fetched(self, fetched: Fetched, sender: Address) -> None:
        box = self._boxes[fetched.box]
        if box.ticket != fetched.ticket:
            return  # of a former life: the gateway has given it back
        letters: list[Letter] = []
        spoiled: list[Delivery] = []
        for delivery in fetched.deliveries:
            try:
                letters.append(box.consumed.read(delivery))
            except ValueError as error:
                log.error(
                    "corrupt_message_dropped",
                    mailbox=str(delivery.mailbox),
                    position=delivery.position,
                    error=str(error)[:200],
                )
                spoiled.append(delivery)
        now, options = self.clock.monotonic(), box.consumed.options()
        self._step(box, signals.Pulled(tuple(letters), now, options, tuple(spoiled)))

    @handles(FetchFailed)
    def on_fetch_failed(self, failed: FetchFailed, sender: Address) -> None:
        box = self._boxes[failed.box]
        if box.ticket == failed.ticket:
            log.warning("fetch_failed", mailbox=str(box.consumed.mailbox), error=failed.reason)
            self._step(box, signals.PullFailed())

    @handles(BoxSettled)
    def on_settled(self, settled: BoxSettled, sender: Address) -> None:
        if settled.life == self._life:
            box = self._boxes[settled.box]
            self._step(box, signals.Settled())
            if self._drainer:
                self._detach_at_rest(box)

    @handles(BoxReleased)
    def on_released(self, released: BoxReleased, sender: Address) -> None:
        box = self._boxes[released.box]
        if box.ticket == released.ticket:
            box.ticket = 0
            leaver, box.leaver = box.leaver, None
            if leaver:
                self.tell(leaver, LetGone(was_attached=True))
            self._report_drained()

    # -- the end of a drain -----------------------------------------------------------

    def _detach_at_rest(self, box: _Box) -> None:
        """Let go, unless a handler runs whose outcome the drain waits for."""
        if box.machine.running is None:
            self._step(box, signals.Detach())

    def _report_drained(self) -> None:
        if self._drainer and not any(box.ticket for box in self._boxes.values()):
            self.tell(self._drainer, Drained(self._name, tuple(self._cut)))
            self._drainer = None

    # -- from turns and timers --------------------------------------------------------

    @handles(TurnEnded)
    def on_turn_ended(self, ended: TurnEnded, sender: Address) -> None:
        box = self._boxes[ended.box]
        if box.turn == sender:
            box.turn = None
        self._step(box, signals.Ended(ended.number, ended.outcome))

    @handles(_Fired)
    def on_fired(self, fired: _Fired, sender: Address) -> None:
        self._step(self._boxes[fired.box], signals.Fired(fired.timer))

    # -- the machine's shell ----------------------------------------------------------

    def _step(self, box: _Box, given: signals.Input) -> None:
        """Step the machine and carry out its effects, in their order."""
        try:
            effects = box.machine.step(given)
        except IllegalInput as error:
            log.error("illegal_input", consumer=self._name, box=box.name, error=str(error))
            raise
        for effect in effects:
            self._carry_out(box, effect)

    def _carry_out(self, box: _Box, effect: signals.Effect) -> None:
        match effect:
            case signals.Pull(most=most, wait_s=wait_s):
                self.tell(self._gateway, FetchBox(box.ticket, most, wait_s))
            case signals.Recall():
                self.tell(self._gateway, RecallBox(box.ticket))
            case signals.Run(number=number, partition=partition):
                box.turn = self.spawn(
                    TurnActor,
                    box.name,
                    number,
                    partition,
                    box.consumed.run,
                    supervision=NEVER_RESTART,
                )
            case signals.Abandon():
                if box.turn is not None:
                    self.stop(box.turn)
                    box.turn = None
            case signals.Settle(verdicts=verdicts):
                self.tell(self._gateway, SettleBox(box.name, self._life, verdicts))
            case signals.Discard(verdicts=verdicts):
                settle = SettleBox(box.name, self._life, verdicts, quiet=True)
                self.tell(self._gateway, settle)
            case signals.Release():
                self.tell(self._gateway, ReleaseBox(box.ticket))
            case signals.StartTimer(name=name, after_s=after_s):
                self.timer(f"{box.name} {name}", after_s, _Fired(box.name, name))
            case signals.StopTimer(name=name):
                self.cancel_timer(f"{box.name} {name}")


def _state_of(box: _Box) -> BoxState:
    machine = box.machine
    return BoxState(
        box=box.name,
        state=machine.state.value,
        attached=machine.attached,
        quiesced=machine.quiesced,
        deferred=machine.deferred,
        paused=machine.paused,
        holds=tuple(machine.holds),
        held=machine.held,
        running=machine.running.key if machine.running else None,
    )
