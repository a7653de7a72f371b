"""An actor that owns mailboxes, and works their mail one partition at a time, each on its own.

What is asked of it stands in its plan: an incarnation that follows one that broke first has
its former life cleared by the gateway, and then goes on with the plan.
"""

from __future__ import annotations

from typing import Final

import structlog
from msgspec import Struct

from actors.box import Box, Fired
from actors.delivery import Nak
from actors.machines import signals
from actors.messages import (
    Attach,
    Begun,
    BoxAttached,
    BoxRefused,
    BoxReleased,
    BoxSettled,
    Brake,
    Braked,
    ClearLife,
    CutShort,
    Describe,
    Description,
    Detach,
    Detached,
    Doubt,
    Drain,
    Drained,
    Establish,
    Established,
    FencedOut,
    Fetched,
    FetchFailed,
    LifeCleared,
    Refused,
    TurnEnded,
    Watch,
)
from actors.plan import Plan
from actors.ports import Unavailable
from actors.system import Actor, Address, ChildFailed, handles

DETACH_ANSWER_S: Final = 1.0
"""How long a detach waits for the broker to take it. Whether or not it does, no handler
starts any more; the rest goes on behind."""

UNCONFIRMED: Final = "unconfirmed"
"""The hold of a seat whose node does not know whether its session stands."""

log = structlog.get_logger(__name__)


class _DetachWaited(Struct, frozen=True):
    """The broker has not taken a detach in time."""

    box: str


class MailActor(Actor):
    """The consumer of its plan's boxes."""

    def __init__(self, plan: Plan, gateway: Address) -> None:
        super().__init__()
        plan.life += 1
        self._plan = plan
        self._gateway = gateway
        self._cleared = plan.life == 1
        self._boxes = {
            name: Box(self, gateway, name, box, plan.life) for name, box in plan.boxes.items()
        }

    def pre_start(self) -> None:
        if self._plan.paused:
            self._step_all(signals.Drain() if self._plan.leaving else signals.Pause())
        if not self._cleared:
            assert self.parent is not None
            self.tell(self.parent, Begun(self._plan.name))
            self.to_gateway(ClearLife(self._plan.life))
        for box in self._boxes.values():
            if box.plan.detacher:
                self._wait_for_detach(box.name)

    @handles(LifeCleared)
    def on_cleared(self, cleared: LifeCleared, sender: Address) -> None:
        if cleared.life == self._plan.life:
            self._cleared = True
            self._go_on()

    def _go_on(self) -> None:
        """Attach what the plan wants attached, or finish the drain that it was in."""
        for box in self._boxes.values():
            if box.plan.attached and not self._plan.leaving:
                box.attach(patient=True)
            else:
                self._answer_detach(box.name)
                gone = f"{self._plan.name} let go of it before it was attached"
                self._answer_attach(box, Refused(Unavailable(gone)))
        self._report()

    def to_gateway(self, message: object) -> None:
        self.tell(self._gateway, message)

    # -- from outside -----------------------------------------------------------------

    @handles(Establish)
    def on_establish(self, wanted: Establish, sender: Address) -> None:
        self._plan.asker = sender
        for box in self._plan.boxes.values():
            box.attached, box.epoch, box.reclaim = True, wanted.epoch, wanted.reclaim
            box.tenure = wanted.tenure
        if self._cleared:
            self._go_on()

    @handles(Attach)
    def on_attach(self, wanted: Attach, sender: Address) -> None:
        box = self._boxes.get(wanted.box)
        if box is None:
            self.tell(sender, Refused(ValueError(f"{self._plan.name} has no box {wanted.box}")))
            return
        if box.plan.attached:
            why = f"{wanted.consumed.mailbox} is attached here already: detach it first"
            self.tell(sender, Refused(ValueError(why)))
            return
        if not box.free or not self._cleared:
            why = f"{wanted.consumed.mailbox}: the broker has not released it yet"
            self.tell(sender, Refused(Unavailable(why)))
            return
        box.plan.consumed, box.plan.attached, box.plan.quiesced = wanted.consumed, True, False
        if box.plan.tenure is None:  # else it has its epoch from there
            box.plan.epoch = wanted.epoch
        box.plan.attacher = sender
        box.attach(patient=False)

    def _answer_attach(self, box: Box, answer: Established | Refused) -> None:
        asker, box.plan.attacher = box.plan.attacher, None
        if asker:
            self.tell(asker, answer)

    @handles(Detach, urgent=True)
    def on_detach(self, wanted: Detach, sender: Address) -> None:
        box = self._boxes.get(wanted.box)
        if box is None or not box.plan.attached:
            if box is not None:  # held for an attachment that did not come: none outlives this
                for name in list(box.plan.holds):
                    self._note(box, signals.Lift(name))
                    box.step(signals.Lift(name))
            self.tell(sender, Detached(was_attached=False))
            return
        box.plan.attached = box.plan.quiesced = False
        box.plan.holds.clear()
        box.step(signals.Detach())
        box.plan.detacher = sender
        self._wait_for_detach(box.name)

    def _wait_for_detach(self, box: str) -> None:
        self.timer(f"detach {box}", DETACH_ANSWER_S, _DetachWaited(box))

    @handles(_DetachWaited)
    def on_detach_waited(self, waited: _DetachWaited, sender: Address) -> None:
        self._answer_detach(waited.box)

    def _answer_detach(self, box: str) -> None:
        plan = self._plan.boxes[box]
        asker, plan.detacher = plan.detacher, None
        if asker:
            self.cancel_timer(f"detach {box}")
            self.tell(asker, Detached(was_attached=True))

    @handles(Brake, urgent=True)
    def on_brake(self, brake: Brake, sender: Address) -> None:
        box = self._boxes.get(brake.box)
        before = box.state() if box else None
        if box is not None:
            self._note(box, brake.signal)
            box.step(brake.signal)
        self.tell(sender, Braked(before))

    @handles(Doubt, urgent=True)
    def on_doubt(self, doubt: Doubt, sender: Address) -> None:
        signal = signals.Hold(UNCONFIRMED) if doubt.on else signals.Lift(UNCONFIRMED)
        for box in self._boxes.values():
            self._note(box, signal)
            box.step(signal)
        self._report()

    def _note(self, box: Box, signal: signals.Brake) -> None:
        """Write a brake into the plan: it outlives the incarnation that took it."""
        match signal:
            case signals.Quiesce():
                box.plan.quiesced = box.plan.attached
            case signals.Unquiesce():
                box.plan.quiesced = False
            case signals.Hold(name=name):
                box.plan.holds[name] = None
            case signals.Lift(name=name):
                box.plan.holds.pop(name, None)
            case signals.Pause():
                self._plan.paused = True

    @handles(Describe, urgent=True)
    def on_describe(self, _: Describe, sender: Address) -> None:
        states = tuple(box.state() for box in self._boxes.values())
        self.tell(sender, Description(self._plan.name, states))

    @handles(Watch, urgent=True)
    def on_watch(self, watch: Watch, sender: Address) -> None:
        """Kept in the plan: whoever watches sees a consumer that broke begin again."""
        for box in self._plan.boxes.values():
            box.watcher = watch.heard
        self.on_describe(Describe(), sender)

    # -- the drain --------------------------------------------------------------------

    @handles(Drain, urgent=True)
    def on_drain(self, _: Drain, sender: Address) -> None:
        self._plan.paused = self._plan.leaving = True
        self._plan.drainer = sender
        self._step_all(signals.Drain())
        self._report()

    @handles(CutShort, urgent=True)
    def on_cut(self, _: CutShort, sender: Address) -> None:
        for box in self._boxes.values():
            box.attaching = False  # nobody waits for a broker that does not answer
            if partition := box.machine.running:
                self._plan.cut.append(partition.key)
                box.step(signals.Cut())
        self._report()

    def _step_all(self, signal: signals.Input) -> None:
        for box in self._boxes.values():
            box.step(signal)

    def _report(self) -> None:
        """Tell whoever waits that all is attached, or that all is let go of."""
        plan, boxes = self._plan, self._boxes.values()
        for box in boxes:  # without a generator: each turn ends here
            if box.fenced:
                self._fenced_out(box.fenced)
                return
        if plan.drainer and self._cleared and all(box.let_go for box in boxes):
            self.tell(plan.drainer, Drained(plan.name, tuple(plan.cut)))
            plan.drainer = None
        if plan.asker and (plan.leaving or (self._cleared and self._all_there())):
            self.tell(plan.asker, Established(plan.name))
            plan.asker = None

    def _all_there(self) -> bool:
        return all(box.ticket or not box.plan.attached for box in self._boxes.values())

    def _fenced_out(self, why: str) -> None:
        """Once, and then nothing any more: whoever is above takes this down."""
        if not all(box.fenced for box in self._boxes.values()):
            for box in self._boxes.values():
                box.fenced = box.fenced or why
            assert self.parent is not None
            self.tell(self.parent, FencedOut(self._plan.name, why))

    # -- from the gateway -------------------------------------------------------------

    @handles(BoxAttached)
    def on_attached(self, attached: BoxAttached, sender: Address) -> None:
        if attached.life != self._plan.life:
            return
        box = self._boxes[attached.box]
        box.attached(attached.ticket)
        self._answer_attach(box, Established(self._plan.name))
        self._report()

    @handles(BoxRefused)
    def on_refused(self, refused: BoxRefused, sender: Address) -> None:
        if refused.life != self._plan.life:
            return
        box = self._boxes[refused.box]
        box.attaching = box.plan.attached = False
        self._answer_attach(box, Refused(refused.error))
        self._report()

    @handles(Fetched)
    def on_fetched(self, fetched: Fetched, sender: Address) -> None:
        box = self._boxes[fetched.box]
        if box.ticket == fetched.ticket:  # else of a former life, which the gateway clears
            box.fetched(tuple(fetched.deliveries), self.clock.monotonic())
            self._report()

    @handles(FetchFailed)
    def on_fetch_failed(self, failed: FetchFailed, sender: Address) -> None:
        box = self._boxes[failed.box]
        if box.ticket == failed.ticket:
            log.warning("fetch_failed", consumer=self._plan.name, error=failed.reason)
            box.step(signals.PullFailed())
            self._report()

    @handles(BoxSettled)
    def on_settled(self, settled: BoxSettled, sender: Address) -> None:
        if settled.life == self._plan.life:
            self._boxes[settled.box].step(signals.Settled())
            self._report()

    @handles(BoxReleased)
    def on_released(self, released: BoxReleased, sender: Address) -> None:
        box = self._boxes[released.box]
        if box.ticket == released.ticket:
            box.ticket = 0
            self._answer_detach(box.name)
            self._report()

    # -- from turns and timers --------------------------------------------------------

    @handles(TurnEnded)
    def on_turn_ended(self, ended: TurnEnded, sender: Address) -> None:
        box = self._boxes[ended.box]
        if ended.outcome is None:
            box.fenced = "the completion was refused"
        else:
            box.step(signals.Ended(ended.number, ended.outcome))
        self._report()

    @handles(ChildFailed)
    def on_turn_failed(self, failed: ChildFailed, sender: Address) -> None:
        """A turn that broke without an outcome has one all the same."""
        for box in self._boxes.values():
            if box.turn == failed.child:
                box.turn = None
                box.step(signals.Ended(box.number, Nak(f"the turn broke: {failed.reason}"[:500])))
        self._report()

    @handles(Fired)
    def on_fired(self, fired: Fired, sender: Address) -> None:
        self._boxes[fired.box].step(signals.Fired(fired.timer))
        self._report()
