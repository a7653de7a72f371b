"""What the runtime needs from outside, in its own words.

`Broker` speaks of mailboxes. It has no streams, consumers or subjects: whoever implements it
may keep mail in any way that keeps these promises (crewlet.testing.conformance shows them).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Container, Sequence
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from actors.delivery import (
    BatchOptions,
    Delivery,
    Letter,
    Mailbox,
    Outcome,
    Partition,
    Partly,
    Verdict,
)
from actors.machines.budget import Backoff


class BrokerError(Exception):
    """A verb of the broker that did not do its work."""


class NotLive(BrokerError):
    """This client was stopped, or not started: the verb changed nothing."""


class Unavailable(BrokerError):
    """The broker did not answer in time: for a write the effect is unknown; try again."""


class TooLarge(BrokerError):
    """The message is larger than any mailbox takes: it left nothing behind; never retry."""


class NoMailbox(BrokerError):
    """There is no mailbox where one is needed: the verb changed nothing, a retry neither."""


class MailboxState(Struct, frozen=True):
    """A mailbox as the broker sees it. `waiting` counts messages not handed out,
    `in_flight` those handed out and not settled (a retry that waits its delay is one)."""

    mailbox: Mailbox
    waiting: int
    in_flight: int


class Receipt(Struct, frozen=True):
    """The broker stored a message at `position`, or had it already (`duplicate`)."""

    position: int
    duplicate: bool = False


class Attachment(Protocol):
    """This process's hold on one mailbox, from attach to release."""

    @property
    def mailbox(self) -> Mailbox: ...

    @property
    def epoch(self) -> int: ...


PUBLISH_S: Final = 5.0
"""How long one try of a publish waits: longer than a step-down of a leader (0.5 s). Who waits for
longer asks again, since an answer may be lost."""


STANDS_S: Final = 60.0
"""For so long at most the fetch of a dead process that the broker takes for a living one may still
be given mail: a client asks anew before that, however long its fetch. By it go what a seat without
work costs (docs/adr/0003) and how long a dead holder's mail is watched."""


class Broker(Protocol):
    """Durable mailboxes. Every call ends within a deadline of the implementation:
    with its answer, or with one of this module's errors."""

    async def ensure(self, mailbox: Mailbox) -> bool:
        """Make the mailbox if it is missing, whatever waits in it kept. True if it was made."""

    async def attach(self, mailbox: Mailbox, epoch: int) -> Attachment:
        """Begin to pull. `epoch` is the owner's fence, 0 where the mailbox has no one owner and
        its readers compete; the mailbox must exist (NoMailbox)."""

    async def fetch(self, attachment: Attachment, most: int, wait_s: float) -> Sequence[Delivery]:
        """Up to `most` messages: waits up to `wait_s` seconds for the first, then takes what
        is there. Nothing within the wait is an empty answer. One fetch at a time."""

    async def recall(self, attachment: Attachment) -> None:
        """End the outstanding fetch: it answers at once with all that was already sent to us,
        so that nothing sits out the ack window. Without an outstanding fetch, nothing."""

    async def settle(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        """Tell the broker, in this order. Returns once every HandBack is confirmed and every
        Dead is stored; Done and Retry are sent, not confirmed."""

    def say(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        """`settle` without a wait, for Done and Retry only, which are sent and not confirmed.
        Raises NotLive or Unavailable where that cannot be done now; settle then."""

    async def release(self, attachment: Attachment) -> None:
        """Stop pulling; the mailbox and its mail stay. Idempotent. An outstanding fetch is
        recalled and what it brings is handed back, confirmed and in order."""

    async def abandon(self, attachment: Attachment) -> None:
        """Stop pulling, for a holder that was fenced: an outstanding fetch ends empty, and the
        broker is told nothing, then or later, of what this client was handed of the mailbox,
        its hand-backs that a killed broker may have forgotten included. All of that is the
        successor's to reclaim. Answers while the broker is away. Idempotent; a release that
        follows does nothing."""

    async def reclaim(
        self, mailbox: Mailbox, keep: Container[int] = (), only: Collection[int] | None = None
    ) -> int:
        """Hand back, in order and with their counts, all messages that a dead holder was
        handed and did not settle: those that wait for a retry included, those at a position in
        `keep` left alone. Only the rightful owner may call it. Returns how many. Where this client
        ensured the mailbox a moment before, what was out then: what a fetch of the dead is given
        meanwhile has to be looked for, like what it is given afterwards.

        With `only` no others are handed back, and of them none that this client was handed
        itself meanwhile: what two looks at `outstanding` showed to be nobody's. `keep` is read
        as each message comes up, so that it may be a table that changes."""

    async def outstanding(self, mailbox: Mailbox) -> frozenset[int]:
        """The positions that the broker counts as handed out and not settled. A retry that
        waits for its time and a hand-back that waits to be fetched are among them: nothing tells
        them apart, so that whoever looks for strays leaves out its own. What is on its way to
        a fetch of this client is not among them. One short question where nothing is out. No
        mailbox is an empty answer."""

    async def sweep(self, mailbox: Mailbox) -> Sequence[Delivery]:
        """Messages that the broker itself gave up on (its own limit of deliveries, above the
        client's budget) and that lie in the mailbox without ever coming again, oldest first.
        Only while nothing of the mailbox is in flight, else an empty answer; what waits, or
        waits for a retry, is never among them. The caller settles each as Dead. Only the
        rightful owner may call it. No mailbox is an empty answer."""

    async def list(self, pattern: str) -> Sequence[MailboxState]:
        """Every mailbox whose topic matches (`*` one segment, `>` the rest), attached or not."""

    async def delete(self, mailbox: Mailbox) -> bool:
        """Destroy the mailbox and its mail. False if there was none."""

    async def publish(
        self, topic: str, body: bytes, *, message_id: str, within_s: float = PUBLISH_S
    ) -> Receipt:
        """Store a message; returns once it is durable. The same `message_id` within the
        broker's window is stored once. Raises TooLarge, Unavailable (unknown, after `within_s`
        seconds at most: retry under the same id) or NotLive; NoMailbox for a seat's topic that no
        mailbox covers, where that was true a moment ago. On every other topic that is kept by
        nobody, and succeeds."""


class Clock(Protocol):
    """Time, as the one thing that tells production from simulation."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def now(self) -> datetime:
        """The wall clock, UTC."""


ReadLetter: TypeAlias = Callable[[Delivery], Letter]
"""Decode a delivery; raises ValueError on a corrupt one, which is then dropped and reported."""

RunPartition: TypeAlias = Callable[[Partition], Awaitable[Outcome | Partly]]
"""The handler of a consumer. An exception is a Nak with its text; cancellation is a Defer."""


class Consumed(Struct, frozen=True):
    """A mailbox and what is done with its mail. `options` is read anew for each drain;
    `backoff` spaces the deliveries of a message whose handler fails."""

    mailbox: Mailbox
    read: ReadLetter
    run: RunPartition
    options: Callable[[], BatchOptions] = BatchOptions
    backoff: Backoff = Backoff()
