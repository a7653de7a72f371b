"""One attachment as a process of a simulation holds it, and what is said of its deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from actors.delivery import Dead, Delivery, Done, HandBack, Mailbox, Retry, Verdict
from actors.ports import Attachment, Unavailable


class Hold:
    """One attachment: the broker's own once it has answered, and the fetch that is outstanding.
    `broken`: before the next pull, what is out has to be put right."""

    def __init__(self, mailbox: Mailbox, epoch: int, real: Attachment) -> None:
        self.mailbox = mailbox
        self.epoch = epoch
        self.real = real
        self.answer: asyncio.Future[Sequence[Delivery]] | None = None
        self.serving: asyncio.Task[Any] | None = None
        self.wanted = 0
        self.until = 0.0
        self.over = False
        self.fetches = 0
        self.broken = False


def kind_of(verdict: Verdict) -> tuple[str, float]:
    """The kind of its record, and the seconds it names."""
    match verdict:
        case Done():
            return "ack", 0.0
        case Retry(delay_s=delay_s):
            return "nak", delay_s
        case HandBack():
            return "defer", 0.0
        case Dead():
            return "dlq", 0.0


def stranger(mailbox: Mailbox, position: int) -> Delivery:
    """A message that is out and was never here: the broker knows it by its position."""
    return Delivery(mailbox, b"", None, position, f"{position}:?")


def late() -> Unavailable:
    """What a question is answered with that nobody answered."""
    return Unavailable("the broker did not answer in time")


def give_up(answer: asyncio.Future[Sequence[Delivery]]) -> None:
    """A fetch whose time is long over ends empty."""
    if not answer.done():
        answer.set_result([])


def raise_in(answer: asyncio.Future[Any], error: BaseException) -> None:
    """Answer with an error, unless it was answered."""
    if not answer.done():
        answer.set_exception(error)


def mine(attachment: Attachment) -> Hold:
    """The attachment, as one of ours."""
    if not isinstance(attachment, Hold):
        raise TypeError(f"{attachment!r} was attached by another broker")
    return attachment
