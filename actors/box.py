"""One mailbox of a mail actor: the shell around its consumer machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
from msgspec import Struct
from msgspec.structs import replace

from actors.delivery import BatchOptions, Defer, Delivery, Letter, Verdict
from actors.failpoints import reached
from actors.machines import signals
from actors.machines.consumer import Consumer, IllegalInput, State
from actors.messages import (
    AttachBox,
    BoxState,
    FetchBox,
    MailWaits,
    RecallBox,
    ReleaseBox,
    SettleBox,
    Stepped,
)
from actors.plan import BoxPlan
from actors.system import Actor, Address, Supervision
from actors.turn import RunTurn, TurnActor

NEVER_AGAIN: Final = Supervision(on_failure="stop")
"""A turn is not run again by its supervisor: what became of it is an outcome of its mail."""

UNCONFIRMED_S: Final = 1.0
"""How long a consumer rests when its node's session was not confirmed in time for a turn."""

log = structlog.get_logger(__name__)


class Fired(Struct, frozen=True):
    """A timer of a box went off."""

    box: str
    timer: str


class Box:
    """Steps the machine and carries out its effects through the actor that owns it.

    `ticket` names the attachment (0: none), `attaching` says that one is under way. `fenced`
    is set once a gate of its tenure was met shut: nothing is carried out from then on.
    """

    def __init__(self, owner: Actor, gateway: Address, name: str, plan: BoxPlan, life: int) -> None:
        self.name = name
        self.plan = plan
        self.machine = Consumer()
        self.ticket = 0
        self.attaching = False
        self.fenced = ""
        self.turn: Address | None = None
        self.number = 0
        self._owner = owner
        self._gateway = gateway
        self._life = life
        self._options = BatchOptions()
        for hold in plan.holds:
            self.step(signals.Hold(hold))

    @property
    def free(self) -> bool:
        """It may be attached: no attachment is there, under way, or being released."""
        return not self.ticket and not self.attaching

    @property
    def let_go(self) -> bool:
        """Nothing of this box is attached, under way, or in hand."""
        return self.free and not self.machine.held

    # -- the attachment ---------------------------------------------------------------

    def attach(self, *, patient: bool) -> None:
        """Ask the gateway for it; the reclaim is for the first attachment only."""
        plan = self.plan
        assert plan.consumed is not None
        self.attaching = True
        mailbox = plan.consumed.mailbox
        wanted = AttachBox(
            self.name, self._life, mailbox, plan.epoch, plan.reclaim, patient, plan.tenure
        )
        self._owner.tell(self._gateway, wanted)

    def attached(self, ticket: int) -> None:
        assert self.plan.consumed is not None
        self.attaching, self.ticket, self.plan.reclaim = False, ticket, False
        self.step(signals.Attached(self.options(), self.plan.consumed.backoff))
        if self.plan.quiesced:
            self.step(signals.Quiesce())
        if not self.plan.attached:  # it was let go of while this was under way
            self.step(signals.Detach())

    def fetched(self, deliveries: tuple[Delivery, ...], now: float) -> None:
        """What a fetch brought; what cannot be read is told apart and reported."""
        assert self.plan.consumed is not None
        letters: list[Letter] = []
        spoiled: list[Delivery] = []
        for delivery in deliveries:
            try:
                letters.append(self.plan.consumed.read(delivery))
            except ValueError as error:
                spoiled.append(delivery)
                log.error(
                    "corrupt_message_dropped",
                    mailbox=str(delivery.mailbox),
                    position=delivery.position,
                    error=str(error)[:200],
                )
        self.step(signals.Pulled(tuple(letters), now, self.options(), tuple(spoiled)))
        if self.machine.state is State.COLLECTING:
            reached("mid_batch_linger")

    def options(self) -> BatchOptions:
        """As they are now; where they cannot be told, as they were."""
        if self.plan.consumed is not None:
            try:
                self._options = self.plan.consumed.options()
            except Exception as error:
                log.error("batch_options_failed", box=self.name, error=type(error).__name__)
        return self._options

    # -- the machine ------------------------------------------------------------------

    def step(self, given: signals.Input) -> None:
        if self.fenced:
            return
        before = self.machine.state
        try:
            effects = self.machine.step(given)
        except IllegalInput as error:
            log.error("illegal_input", box=self.name, error=str(error))
            raise
        if self.plan.watcher is not None:
            self.plan.watcher(_stepped(self.name, given, before, self.machine.state, effects))
        for effect in effects:
            if not self._shut(effect):
                self._carry_out(effect)

    def _shut(self, effect: signals.Effect) -> bool:
        """Whether the tenure forbids it: where it is over, everything that the broker would
        hear of, and every turn."""
        tenure = self.plan.tenure
        if tenure is None or self.fenced or isinstance(effect, _AT_ANY_TIME):
            return bool(self.fenced)
        if not tenure.may_settle(self._owner.clock.monotonic()):
            self.fenced = f"{type(effect).__name__.lower()} after the session had ended"
        return bool(self.fenced)

    def _carry_out(self, effect: signals.Effect) -> None:
        owner, gateway = self._owner, self._gateway
        match effect:  # first those of every turn
            case signals.Run():
                self._run(effect)
            case signals.Settle(verdicts=verdicts, confirmed=confirmed):
                self._settle(verdicts, confirm=confirmed)
            case signals.Pull(most=most, wait_s=wait_s):
                owner.tell(gateway, FetchBox(self.ticket, most, wait_s))
            case signals.Recall():
                owner.tell(gateway, RecallBox(self.ticket))
            case signals.Abandon():
                if self.turn is not None:
                    owner.stop(self.turn)
                    self.turn = None
            case signals.Discard(verdicts=verdicts):
                self._settle(verdicts, confirm=False)
            case signals.Release():
                owner.tell(gateway, ReleaseBox(self.ticket))
            case signals.StartTimer(name=name, after_s=after_s):
                owner.timer(f"{self.name} {name}", after_s, Fired(self.name, name))
            case signals.StopTimer(name=name):
                owner.cancel_timer(f"{self.name} {name}")

    def _settle(self, verdicts: Sequence[tuple[Delivery, Verdict]], *, confirm: bool) -> None:
        settle = SettleBox(self.name, self._life, verdicts, confirm, self.plan.tenure)
        self._owner.tell(self._gateway, settle)

    def _run(self, run: signals.Run) -> None:
        assert self.plan.consumed is not None
        self.number = run.number
        partition, tenure = run.partition, self.plan.tenure
        if tenure is not None:
            if not tenure.may_start(self._owner.clock.monotonic()):
                self._start_later(run.number, leaving=tenure.session.leaving)
                return
            partition = replace(partition, right=tenure)
        if self.turn is None:
            self.turn = self._owner.spawn(
                TurnActor, self.name, name=f"turn of {self.name}", supervision=NEVER_AGAIN
            )
        self._owner.tell(self.turn, RunTurn(run.number, partition, self.plan.consumed.run))

    def _start_later(self, number: int, *, leaving: bool) -> None:
        """Back to the mailbox; a node that leaves lets its successor have the seat at once."""
        why = "the node leaves" if leaving else "the node could not confirm its session"
        if leaving and self._owner.parent is not None:
            self._owner.tell(self._owner.parent, MailWaits(self._owner.me))
        self.step(signals.Ended(number, Defer(why, UNCONFIRMED_S)))

    def state(self) -> BoxState:
        machine = self.machine
        return BoxState(
            box=self.name,
            state=machine.state.value,
            attached=machine.attached,
            quiesced=machine.quiesced,
            deferred=machine.deferred,
            paused=machine.paused,
            holds=tuple(machine.holds),
            held=machine.held,
            running=machine.running.key if machine.running else None,
        )


_AT_ANY_TIME: Final = (signals.Abandon, signals.StartTimer, signals.StopTimer)
"""Effects that nobody outside this process hears of."""


def _stepped(
    box: str,
    given: signals.Input,
    before: signals.State,
    after: signals.State,
    effects: Sequence[signals.Effect],
) -> Stepped:
    asked = tuple(type(effect).__name__ for effect in effects)
    return Stepped(box, type(given).__name__, before.value, after.value, asked)
