"""What actors send one another: frozen commands and replies, shared by reference."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from actors.delivery import Delivery, Mailbox, Outcome, Verdict

# -- to the gateway, and its answers --------------------------------------------------


class AttachBox(Struct, frozen=True):
    """Pull for the sender's box. `reclaim`: first hand back what a dead holder still has."""

    box: str
    mailbox: Mailbox
    epoch: int
    reclaim: bool


class BoxAttached(Struct, frozen=True):
    """`ticket` names this attachment in all that follows."""

    box: str
    ticket: int


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
    """Tell the broker, in this order; answered by `BoxSettled` once the broker was told.
    `quiet`: no answer is wanted."""

    ticket: int
    verdicts: Sequence[tuple[Delivery, Verdict]]
    quiet: bool = False


class BoxSettled(Struct, frozen=True):
    box: str
    ticket: int


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
    box: str
    number: int
    outcome: Outcome


# -- from the node's root to those that consume, and back -----------------------------


class Establish(Struct, frozen=True):
    """Attach every box; answered by `Established` when all are attached."""

    epoch: int
    reclaim: bool


class Established(Struct, frozen=True):
    name: str


class Drain(Struct, frozen=True):
    """Take nothing new, end what runs, hand back the rest, let go; then `Drained`."""


class CutShort(Struct, frozen=True):
    """Of a drain: wait no longer for running turns."""


class Drained(Struct, frozen=True):
    """Every box is released. `cut`: partitions whose handler was not waited for."""

    name: str
    cut: tuple[str, ...]


class Brake(Struct, frozen=True):
    """An operator's hand on one box: the machine's own input of that name."""

    box: str
    signal: object


class Describe(Struct, frozen=True):
    """Answered by `Description`."""


class BoxState(Struct, frozen=True):
    """A box as its machine stands. `running` is the key of the partition being worked."""

    box: str
    state: str
    quiesced: bool
    deferred: bool
    paused: bool
    holds: tuple[str, ...]
    held: int
    running: str | None


class Description(Struct, frozen=True):
    name: str
    boxes: tuple[BoxState, ...]


# -- to the root, from outside --------------------------------------------------------


class StartNode(Struct, frozen=True):
    """Answered by `NodeStarted` when every seat is established and routing runs."""


class NodeStarted(Struct, frozen=True):
    seats: int


class DrainNode(Struct, frozen=True):
    """Answered by `NodeDrained` within `bound_s` seconds and a moment."""

    bound_s: float


class NodeDrained(Struct, frozen=True):
    """`cut` names, per consumer, the conversations whose handler was not waited for;
    `stuck` the consumers whose mailboxes could not be let go."""

    cut: tuple[tuple[str, str], ...]
    stuck: tuple[str, ...]


class Whereabouts(Struct, frozen=True):
    """Answered by the address of the consumer of this name, or None."""

    name: str
