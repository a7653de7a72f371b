"""The consumer's vocabulary: its states, the inputs that may come, the effects it asks for."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from actors.delivery import BatchOptions, Delivery, Letter, Outcome, Partition, Partly, Verdict
from actors.machines.budget import Backoff


class State(Enum):
    """Where a consumer is. Brakes lie over it and are no states of their own."""

    DETACHED = "detached"
    RESTING = "resting"
    PULLING = "pulling"
    COLLECTING = "collecting"
    BACKING_OFF = "backing_off"
    RUNNING = "running"
    SETTLING = "settling"


class IllegalInput(Exception):
    """This input cannot come now; the machine is as it was."""


# -- inputs ---------------------------------------------------------------------------


class Attached(Struct, frozen=True):
    """The mailbox is ours to pull from; `options` as they are now, `backoff` to the end."""

    options: BatchOptions
    backoff: Backoff = Backoff()


class Pulled(Struct, frozen=True):
    """The end of a pull at `now` (seconds): what could be read, and what could not."""

    letters: tuple[Letter, ...]
    now: float
    options: BatchOptions
    spoiled: tuple[Delivery, ...] = ()


class PullFailed(Struct, frozen=True):
    """The broker did not answer the pull."""


class Ended(Struct, frozen=True):
    """What the handler of run `number` made of its partition."""

    number: int
    outcome: Outcome | Partly


class Settled(Struct, frozen=True):
    """The last `Settle` is done."""


class Fired(Struct, frozen=True):
    """The timer of this name went off."""

    timer: str


class Quiesce(Struct, frozen=True):
    """Take nothing new; what runs may finish. Reversible at no cost."""


class Unquiesce(Struct, frozen=True):
    """Undo Quiesce, and the rest that a Defer began. Lifts no hold."""


class Hold(Struct, frozen=True):
    """Take nothing new for as long as this name, or another one, is held."""

    name: str


class Lift(Struct, frozen=True):
    name: str


class Pause(Struct, frozen=True):
    """One way: the client drains."""


class Drain(Struct, frozen=True):
    """Pause, and let go of the mailbox as soon as no handler runs."""


class Cut(Struct, frozen=True):
    """Wait no longer for the running handler: its mail goes back, what it says later is void."""


class Detach(Struct, frozen=True):
    """Let go of the mailbox. A running handler's outcome still applies."""


Input: TypeAlias = (
    Attached
    | Pulled
    | PullFailed
    | Ended
    | Settled
    | Fired
    | Quiesce
    | Unquiesce
    | Hold
    | Lift
    | Pause
    | Drain
    | Cut
    | Detach
)

Brake: TypeAlias = Quiesce | Unquiesce | Hold | Lift | Pause
"""What an operator, or whoever embeds a node, may do to a consumer by hand."""

# -- effects --------------------------------------------------------------------------


class Pull(Struct, frozen=True):
    most: int
    wait_s: float


class Recall(Struct, frozen=True):
    """End the outstanding pull; it still answers with what was already sent."""


class Discard(Struct, frozen=True):
    """Settle these beside the drain, without an answer: they are worked by nobody."""

    verdicts: tuple[tuple[Delivery, Verdict], ...]


class Run(Struct, frozen=True):
    number: int
    partition: Partition


class Abandon(Struct, frozen=True):
    number: int


class Settle(Struct, frozen=True):
    """`confirmed`: answer with `Settled`, once the broker has confirmed what it must."""

    verdicts: tuple[tuple[Delivery, Verdict], ...]
    confirmed: bool


class StartTimer(Struct, frozen=True):
    name: str
    after_s: float


class StopTimer(Struct, frozen=True):
    name: str


class Release(Struct, frozen=True):
    """Give up the attachment. It comes once, after the mail that goes back."""


Verdicts: TypeAlias = list[tuple[Delivery, Verdict]]

Effect: TypeAlias = (
    Pull | Recall | Discard | Run | Abandon | Settle | StartTimer | StopTimer | Release
)
