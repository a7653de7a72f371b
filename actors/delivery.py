"""What travels between a mailbox and a handler: mailboxes, deliveries, partitions, outcomes.

Four words, four meanings: an *event* is a record of what happened; a *delivery* is a message
that a consumer was handed; an *outcome* is what a handler made of its partition; a *verdict*
is what the broker is told about one delivery.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias

from msgspec import Struct

BUDGET: Final = 25
"""Deliveries that a message has before it becomes a dead letter (docs/contract.md 43)."""

MAX_LINGER_S: Final = 60.0
"""The longest linger. Collection and one turn must fit the 30-minute ack window together."""

MAX_BATCH: Final = 100
"""The largest drain: a digest is re-sent to a model on every round."""


class Mailbox(Struct, frozen=True, order=True):
    """A durable place where the messages of `topic` wait for the members of `group`."""

    topic: str
    group: str

    def __str__(self) -> str:
        return f"{self.topic} [{self.group}]"


class Delivery(Struct, frozen=True):
    """One message as it was handed over.

    `count` is 1 on the first delivery and rises by one with each; None when the broker's
    metadata could not be read. `position` orders the messages of one mailbox and never
    changes. `receipt` means something to the broker that made it, and to nobody else.
    """

    mailbox: Mailbox
    body: bytes
    count: int | None
    position: int
    receipt: str
    message_id: str = ""


class Letter(Struct, frozen=True):
    """A delivery that could be read. `timestamp` is seconds since the epoch, None if unstated."""

    delivery: Delivery
    id: str
    key: str
    timestamp: float | None
    event: object

    @property
    def headroom(self) -> int | None:
        return headroom(self.delivery.count)


class Fence(Struct, frozen=True):
    """What a completion must show: the seat's row and the revision at which it was taken."""

    resource: str
    epoch: int
    revision: int


class Right(Protocol):
    """To work a seat, as long as it lasts (actors.tenure.Tenure)."""

    fence: Fence

    def may_start(self, now: float) -> bool:
        """Whether a turn may start at `now`, seconds of the node's monotonic clock."""


class Partition(Struct, frozen=True):
    """The messages of one conversation out of one drain; never empty, one handler call.

    `right` is the one under which it is worked; None where nobody shares the mailbox."""

    key: str
    letters: tuple[Letter, ...]
    right: Right | None = None

    @property
    def fence(self) -> Fence | None:
        """What its completion must show."""
        return None if self.right is None else self.right.fence

    @property
    def headroom(self) -> int | None:
        """The smallest stated headroom: what handing this partition back would cost."""
        stated = [h for letter in self.letters if (h := letter.headroom) is not None]
        return min(stated) if stated else None

    @property
    def attempt(self) -> int:
        """1 on a first try: the highest count among the messages."""
        return max((letter.delivery.count or 1 for letter in self.letters), default=1)


def headroom(count: int | None) -> int | None:
    """Further deliveries after the `count`-th: 0 on the last, None when the count is unknown."""
    return None if count is None else max(0, BUDGET - count)


class BatchOptions(Struct, frozen=True):
    """How a drain is collected. Values outside their range are clamped where they are read."""

    max_batch: int = 20
    linger_s: float = 0.0

    @property
    def cap(self) -> int:
        return min(MAX_BATCH, max(1, self.max_batch))

    @property
    def window_s(self) -> float:
        return min(MAX_LINGER_S, max(0.0, self.linger_s))


class Ack(Struct, frozen=True, tag="ack"):
    """Done. `answer` is what the turn has to say, recorded with its completion."""

    answer: str | None = None


class Nak(Struct, frozen=True, tag="nak"):
    """The handler failed: again after a backoff, behind the mail that waits."""

    reason: str


class Defer(Struct, frozen=True, tag="defer"):
    """Not now, not here: back to the head of the mailbox; the consumer pauses itself."""

    reason: str
    retry_after_s: float = 5.0


Outcome: TypeAlias = Ack | Nak | Defer


class Partly(Struct, frozen=True, tag="partly"):
    """Some messages of the partition are done whatever became of the `rest`: a finished turn
    had worked them before. `done` holds their letters' ids."""

    done: tuple[str, ...]
    rest: Outcome


class Done(Struct, frozen=True, tag="done"):
    """The broker may forget the message."""


class Retry(Struct, frozen=True, tag="retry"):
    """Again after `delay_s`, behind the mail that waits."""

    delay_s: float


class HandBack(Struct, frozen=True, tag="hand_back"):
    """To the head at once, confirmed by the broker; costs one delivery."""


class Dead(Struct, frozen=True, tag="dead"):
    """Stored as a dead letter first, and only then taken out of the mailbox."""

    reason: str


Verdict: TypeAlias = Done | Retry | HandBack | Dead
