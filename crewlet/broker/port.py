"""What the engine asks of a broker beyond mailboxes: broadcasts, dead letters, the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from msgspec import Struct

from actors.delivery import Mailbox
from actors.ports import Broker
from crewlet.coordination.store import Store

Listen: TypeAlias = Callable[[str, bytes], None]
"""Called with the topic and the body of each broadcast message; what it raises is logged."""


Answer: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Answers one question; what it raises is logged, and the asker hears nothing of it."""


class DeadLetter(Struct, frozen=True):
    """A message that was given up. `deliveries` is how often it was handed out, `at` (UTC)
    when it was stored, `message_id` the id it was published under."""

    id: str
    mailbox: Mailbox
    reason: str
    deliveries: int
    at: datetime
    message_id: str
    body: bytes


class Waiting(Struct, frozen=True):
    """A message that a mailbox has not settled, as `peek` shows it. `at` (UTC) is when it was
    stored; `handed_out` says that it was delivered at least once."""

    position: int
    at: datetime
    message_id: str
    body: bytes
    handed_out: bool


class Subscription(Protocol):
    """A broadcast subscription of this process."""

    async def close(self) -> None:
        """No call of the handler begins after this returns. Idempotent."""


class CompanyBroker(Broker, Protocol):
    """One node's client of the broker: the mailboxes of `actors.ports` and what is here.

    Every verb raises NotLive before `start` and after `stop`, Unavailable while the broker
    does not answer.
    """

    @property
    def backend(self) -> str:
        """`jetstream` or `memory`, for people to read; nothing may decide on it."""

    @property
    def connected(self) -> bool:
        """Started, and the broker answers as far as this client knows."""

    @property
    def store(self) -> Store:
        """The coordination store that lives beside the mail."""

    async def start(self) -> None:
        """Connect, and make what the engine needs. Idempotent."""

    async def stop(self) -> None:
        """Leave. What this client was handed and did not settle waits out its ack window
        or a reclaim. Idempotent."""

    async def subscribe(self, pattern: str, handler: Listen) -> Subscription:
        """Every message published from now on to a matching topic, on every node.

        The pattern lies in one namespace (`crewlet.events.>`); one that spans them all
        (`>`, `crewlet.>`, `*.x`) is refused with ValueError.
        """

    async def serve(self, subject: str, answer: Answer) -> Subscription:
        """Answer every question asked on `subject` from now on, beside everybody else who
        serves it, up to 64 at the same time. Nothing is stored; a slow answer delays no other.
        Closing the subscription waits for the answers under way."""

    async def ask(
        self, subject: str, body: bytes, *, wanted: int, within_s: float
    ) -> Sequence[bytes]:
        """Put a question to everybody who serves `subject`; the first `wanted` answers, or
        those that came within `within_s` seconds. Nobody serving is an empty answer."""

    async def recent(self, pattern: str, most: int) -> Sequence[tuple[str, bytes]]:
        """The newest `most` retained messages, oldest first. Only crewlet.events.* and
        crewlet.config.* are retained; other namespaces are an empty answer."""

    async def peek(self, mailbox: Mailbox, most: int) -> Sequence[Waiting]:
        """The oldest `most` (100 at the most) messages that the mailbox has not settled, oldest
        first. Nothing is handed out or counted by it. No mailbox is an empty answer."""

    async def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """The newest `limit` dead letters, newest first."""

    async def dead_letter(self, id: str) -> DeadLetter | None:
        """One dead letter; None where there is none."""

    async def drop_dead_letter(self, id: str) -> bool:
        """Remove a dead letter. False if there was none."""
