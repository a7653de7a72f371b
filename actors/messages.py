"""What actors send one another: frozen commands and replies, shared by reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from actors.delivery import Delivery, Mailbox, Outcome, Partly, Verdict
from actors.machines import signals
from actors.ports import Consumed
from actors.system import Address
from actors.tenure import Tenure

# -- to the gateway, and its answers --------------------------------------------------


class ClearLife(Struct, frozen=True):
    """The sender began again, or `owner` is gone: release what lives before `life` attached,
    and give back what they were handed and did not settle. Answered by `LifeCleared`, once
    the broker took it."""

    life: int
    owner: Address | None = None


class LifeCleared(Struct, frozen=True):
    life: int
    owner: Address


class Forsake(Struct, frozen=True):
    """`owner` was fenced: let go of all it has without a word to the broker, also of what was
    said already and not taken yet. Answered by `Forsaken`."""

    owner: Address


class Forsaken(Struct, frozen=True):
    """Nothing of it is under way any more."""

    owner: Address


class LookAround(Struct, frozen=True):
    """The node could not be heard for a while: look for what was lost on its way to us."""


class Flush(Struct, frozen=True):
    """Answered by `Flushed` once the broker has taken every settlement."""


class Flushed(Struct, frozen=True):
    """Nothing that was settled is still to be told."""


class AttachBox(Struct, frozen=True):
    """Pull for the sender's box.

    `life` tells the sender's incarnations apart. `reclaim`: first hand back what a dead holder
    still has. `patient`: try until the broker answers, instead of answering `BoxRefused`.
    `tenure`: for as long as it lasts; None where the mailbox has no one owner.
    """

    box: str
    life: int
    mailbox: Mailbox
    epoch: int
    reclaim: bool
    patient: bool
    tenure: Tenure | None = None


class BoxAttached(Struct, frozen=True):
    """`ticket` names this attachment in what is fetched, recalled and released."""

    box: str
    life: int
    ticket: int


class BoxRefused(Struct, frozen=True):
    """The broker did not attach the box; `error` is what it raised."""

    box: str
    life: int
    error: BaseException


class FetchBox(Struct, frozen=True):
    ticket: int
    most: int
    wait_s: float


class Fetched(Struct, frozen=True):
    box: str
    ticket: int
    deliveries: Sequence[Delivery]


class FetchFailed(Struct, frozen=True):
    box: str
    ticket: int
    reason: str


class RecallBox(Struct, frozen=True):
    ticket: int


class SettleBox(Struct, frozen=True):
    """Tell the broker, in this order; where an answer is wanted (`confirm`), `BoxSettled`
    follows once it was told. It needs no attachment: a handler's outcome applies after its
    box was released. Nothing is told once the `tenure` is over."""

    box: str
    life: int
    verdicts: Sequence[tuple[Delivery, Verdict]]
    confirm: bool
    tenure: Tenure | None = None


class BoxSettled(Struct, frozen=True):
    box: str
    life: int


class ReleaseBox(Struct, frozen=True):
    ticket: int


class BoxReleased(Struct, frozen=True):
    box: str
    ticket: int


class InFlight(Struct, frozen=True):
    """One line of the gateway's table. `held_s` counts from the hand-over."""

    mailbox: Mailbox
    position: int
    count: int | None
    held_s: float


class ListInFlight(Struct, frozen=True):
    """Answered by a tuple of InFlight."""


# -- between a seat and its turns -----------------------------------------------------


class TurnEnded(Struct, frozen=True):
    """`outcome` None: the completion was refused, because the seat is somebody else's."""

    box: str
    number: int
    outcome: Outcome | Partly | None


# -- from the node's root to those that consume, and back -----------------------------


class Establish(Struct, frozen=True):
    """Attach every box; answered by `Established` when all are attached."""

    epoch: int
    reclaim: bool
    tenure: Tenure | None = None


class Established(Struct, frozen=True):
    name: str


class Attach(Struct, frozen=True):
    """Attach one box, from now on for what is `consumed` here; answered by `Established`, or
    by `Refused`. A handler of the last attachment that still runs goes first."""

    box: str
    consumed: Consumed
    epoch: int


class Refused(Struct, frozen=True):
    """It was not attached; `error` says why."""

    error: BaseException


class Detach(Struct, frozen=True):
    """Let go of one box; answered by `Detached` once the broker took it, or after a moment
    where it does not answer: from then on no handler starts. One that runs is not waited for:
    its own outcome still applies."""

    box: str


class Detached(Struct, frozen=True):
    """`was_attached`: there was something to let go of."""

    was_attached: bool


class Drain(Struct, frozen=True):
    """Take nothing new, end what runs, hand back the rest, let go; then `Drained`."""


class CutShort(Struct, frozen=True):
    """Of a drain: wait no longer for running turns."""


class Doubt(Struct, frozen=True):
    """The node's session is not confirmed (`on`), or is again: start nothing meanwhile."""

    on: bool


class MailWaits(Struct, frozen=True):
    """Mail came for a seat whose node leaves: it went back, and waits for the next owner."""

    seat: Address


class FencedOut(Struct, frozen=True):
    """A seat met a gate that is shut: it does nothing any more, and says so once."""

    name: str
    reason: str


class Begun(Struct, frozen=True):
    """A consumer that broke is there again."""

    name: str


class Drained(Struct, frozen=True):
    """Every box is released, and what was in hand is back. `cut`: partitions whose handler was
    not waited for."""

    name: str
    cut: tuple[str, ...]


class BoxState(Struct, frozen=True):
    """A box as its machine stands. `running` is the key of the partition being worked."""

    box: str
    state: str
    attached: bool
    quiesced: bool
    deferred: bool
    paused: bool
    holds: tuple[str, ...]
    held: int
    running: str | None


class Brake(Struct, frozen=True):
    """A hand on one box: the machine's own input of that name. Answered by `Braked`."""

    box: str
    signal: signals.Brake


class Braked(Struct, frozen=True):
    """How the box stood before the brake: what the verb that set it answers from. None where
    there is no such box."""

    before: BoxState | None


class Describe(Struct, frozen=True):
    """Answered by `Description`."""


class Description(Struct, frozen=True):
    name: str
    boxes: tuple[BoxState, ...]


class Stepped(Struct, frozen=True):
    """One step of a box's machine: what came, and what became of it. `effects` are the kinds
    of what it asked for, in order."""

    box: str
    given: str
    before: str
    after: str
    effects: tuple[str, ...]


class Watch(Struct, frozen=True):
    """Call `heard` with each step of every box from now on, or nobody any more; answered by
    `Description`. It is called inside the actor: it may neither wait nor raise."""

    heard: Callable[[Stepped], None] | None


# -- to the root, from outside --------------------------------------------------------


class StartNode(Struct, frozen=True):
    """Answered by `NodeStarted` when every seat is established and routing runs."""


class NodeStarted(Struct, frozen=True):
    seats: int


class NotStarted(Struct, frozen=True):
    """The node must not be: `why` says who is in its way."""

    why: str


class StandAside(Struct, frozen=True):
    """Give up this node's seats to others, each as its turn ends, and take none; or (`on` false)
    take some again. It goes on to live."""

    on: bool


class Relabel(Struct, frozen=True):
    """Offer these labels to the fleet from now on; until the process ends."""

    labels: Mapping[str, str]


class Reconsider(Struct, frozen=True):
    """The company may have other seats than before. `facts` are what the node's row says of it
    from now on, beside its roles and labels."""

    facts: Mapping[str, str]


class DrainNode(Struct, frozen=True):
    """Answered by `NodeDrained` within `bound_s` seconds and a moment."""

    bound_s: float


class NodeDrained(Struct, frozen=True):
    """`cut` names, per consumer, the conversations whose handler was not waited for;
    `stuck` the consumers whose mailboxes could not be let go, or the gateway, where the broker
    could not be told all that became of the mail."""

    cut: tuple[tuple[str, str], ...]
    stuck: tuple[str, ...]


class Consume(Struct, frozen=True):
    """Have a consumer of this name and these boxes, made where there is none, and attached to
    nothing at first; answered by its address."""

    name: str
    boxes: tuple[str, ...]


class Whereabouts(Struct, frozen=True):
    """Answered by the address of the consumer of this name, or of the gateway, or None."""

    name: str
