"""The receipt of a delivery: JetStream's ack subject, which also says what was delivered."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_PREFIX = "$JS.ACK."

HAND_BACK: Final = b"-NAK"
"""Said to a receipt: its message is at the head again."""


class Receipt(Struct, frozen=True):
    """`count` is 1 on the first delivery; `sequence` is the stream's, `turn` the consumer's."""

    count: int
    sequence: int
    turn: int


def is_receipt(subject: str) -> bool:
    return subject.startswith(_PREFIX)


def read(subject: str) -> Receipt | None:
    """None where the subject is of a form that we do not know."""
    tokens = subject.split(".")
    # $JS.ACK.stream.consumer.count.sequence.turn.time.pending, or since 2.11 with a domain and
    # an account before the stream, and perhaps one more token at the end.
    first = 4 if len(tokens) == 9 else 6 if len(tokens) >= 11 else 0
    if not first:
        return None
    try:
        return Receipt(int(tokens[first]), int(tokens[first + 1]), int(tokens[first + 2]))
    except ValueError:
        return None


def to(stream: str, consumer: str) -> str:
    """How the receipts of a mailbox begin."""
    return f"{_PREFIX}{stream}.{consumer}."


def write(stream: str, consumer: str, sequence: int, turn: int) -> str:
    """A receipt for a message that somebody else was handed: how a dead holder's is settled.

    The broker looks at the two sequences only; the count it keeps itself.
    """
    return f"{_PREFIX}{stream}.{consumer}.1.{sequence}.{turn}.0.0"
