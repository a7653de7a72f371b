"""An actor that owns mailboxes: the shell around one consumer machine for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog
from msgspec import Struct

from actors.delivery import Delivery, Done, Letter
from actors.machines import signals
from actors.machines.consumer import Consumer, IllegalInput
from actors.messages import (
    AttachBox,
    BoxAttached,
    BoxReleased,
    BoxSettled,
    BoxState,
    Brake,
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
    """One mailbox of this actor: its machine, its ticket, its running turn."""

    name: str
    consumed: Consumed
    machine: Consumer
    ticket: int = 0
    turn: Address | None = None


class MailActor(Actor):
    """Owns `boxes`; their mail is worked one partition at a time, each box on its own.

    After a restart it attaches again under the epoch it was established with.
    """

    def __init__(self, name: str, gateway: Address, boxes: Mapping[str, Consumed]) -> None:
        super().__init__()
        self._name = name
        self._gateway = gateway
        self._boxes = {box: _Box(box, consumed, Consumer()) for box, consumed in boxes.items()}
        self._asker: Address | None = None
        self._drainer: Address | None = None
        self._cut: list[str] = []

    # -- from outside -----------------------------------------------------------------

    @handles(Establish)
    def on_establish(self, wanted: Establish, sender: Address) -> None:
        self._asker = sender
        for box in self._boxes.values():
            attach = AttachBox(box.name, box.consumed.mailbox, wanted.epoch, wanted.reclaim)
            self.tell(self._gateway, attach)

    @handles(Brake)
    def on_brake(self, brake: Brake, sender: Address) -> None:
        if (box := self._boxes.get(brake.box)) and isinstance(brake.signal, _BRAKES):
            self._step(box, brake.signal)

    @handles(Describe)
    def on_describe(self, _: Describe, sender: Address) -> None:
        states = tuple(_state_of(box) for box in self._boxes.values())
        self.tell(sender, Description(self._name, states))

    @handles(Drain)
    def on_drain(self, _: Drain, sender: Address) -> None:
        self._drainer = sender
        for box in self._boxes.values():
            self._step(box, signals.Pause())
            if box.machine.running is None:
                self._step(box, signals.Detach())
        self._report_drained()

    @handles(CutShort)
    def on_cut(self, _: CutShort, sender: Address) -> None:
        for box in self._boxes.values():
            if partition := box.machine.running:
                self._cut.append(partition.key)
                self._step(box, signals.Cut())
                self._step(box, signals.Detach())

    # -- from the gateway -------------------------------------------------------------

    @handles(BoxAttached)
    def on_attached(self, attached: BoxAttached, sender: Address) -> None:
        box = self._boxes[attached.box]
        box.ticket = attached.ticket
        self._step(box, signals.Attached(box.consumed.options()))
        if self._asker and all(box.ticket for box in self._boxes.values()):
            self.tell(self._asker, Established(self._name))
            self._asker = None

    @handles(Fetched)
    def on_fetched(self, fetched: Fetched, sender: Address) -> None:
        box = self._boxes[fetched.box]
        if box.ticket != fetched.ticket:
            return  # from an attachment that the gateway has taken back
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
        box = self._boxes[settled.box]
        if box.ticket == settled.ticket:
            self._step(box, signals.Settled())
            if self._drainer and box.machine.running is None:
                self._step(box, signals.Detach())

    @handles(BoxReleased)
    def on_released(self, released: BoxReleased, sender: Address) -> None:
        box = self._boxes[released.box]
        if box.ticket == released.ticket:
            box.ticket = 0
            self._report_drained()

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
                self.tell(self._gateway, SettleBox(box.ticket, verdicts))
            case signals.Drop(deliveries=deliveries):
                done = tuple((delivery, Done()) for delivery in deliveries)
                self.tell(self._gateway, SettleBox(box.ticket, done, quiet=True))
            case signals.Release():
                self.tell(self._gateway, ReleaseBox(box.ticket))
            case signals.StartTimer(name=name, after_s=after_s):
                self.timer(f"{box.name} {name}", after_s, _Fired(box.name, name))
            case signals.StopTimer(name=name):
                self.cancel_timer(f"{box.name} {name}")


_BRAKES: Final = (
    signals.Quiesce,
    signals.Unquiesce,
    signals.Hold,
    signals.Lift,
    signals.Pause,
    signals.Detach,
)


def _state_of(box: _Box) -> BoxState:
    machine = box.machine
    return BoxState(
        box=box.name,
        state=machine.state.value,
        quiesced=machine.quiesced,
        deferred=machine.deferred,
        paused=machine.paused,
        holds=tuple(machine.holds),
        held=machine.held,
        running=machine.running.key if machine.running else None,
    )
