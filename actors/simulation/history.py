"""What happened, in one order: each record as it took effect at the broker or in a node.

The wires write it (what the broker took, what it handed out) and so do hooks in the nodes
(turns). Checkers read it as it is written; its hash says whether two runs were the same run.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

LAST: Final = 400
"""Records that are kept to be shown beside a violation."""


class Record(Struct, array_like=True):
    """One thing that happened. Which fields mean something depends on `kind` (see `KINDS`)."""

    t: float
    kind: str
    node: str = ""
    inc: int = 0
    seat: str = ""
    fence: int = 0
    key: str = ""
    msg: str = ""
    seq: int = 0
    dc: int = 0
    pos: int = 0
    sent: float = 0.0
    code: str = ""


KINDS: Final = {
    "pub_req": "somebody began to publish `msg` of conversation `key` to `seat`",
    "pub_ack": "the broker stored it at `seq`; code `dup` where it had it",
    "ensure": "the seat has a mailbox from now on; code `again` where it had: it holds `pos`",
    "pub_none": "the seat has no mailbox, and whoever published was told",
    "deliver": "the broker handed `msg` at `seq` out for the `dc`-th time; `pos` names the fetch",
    "got": "the node has it in its hands",
    "turn_start": "a turn for `pos` letters of `key` began; `sent`: when the ledger was asked",
    "turn_letter": "one of them; `sent` is its timestamp, `code` the seat its mailbox belongs to",
    "turn_end": "the turn came to an outcome (`code`)",
    "skip": "a turn was not needed: the ledger has the letter",
    "complete_ok": "the broker recorded `msg` as worked, under `fence`, at `pos` of its log",
    "complete_rejected": "the broker refused the record: the fence is old",
    "complete_dup": "the broker refused the record: it has one",
    "ack": "the broker forgot the message because it was worked",
    "nak": "again after `sent` seconds, behind what waits",
    "defer": "back to the head of the mailbox; `pos` counts the process's settlements",
    "dlq": "stored as a dead letter, and then forgotten",
    "reclaim": "the broker was asked to hand back what a dead holder had; `pos` messages",
    "session": "the node wrote its own row: `dc` is its epoch, `sent` when that was sent",
    "session_over": "a node's row was written released; `code` is who did it: self, peer or heir",
    "grant": "`seat` was taken: `fence` is the row's revision, `dc` its epoch, `pos` the session",
    "release": "the row of `seat` was written as free",
    "wiped": "all rows of leases are gone",
    "hold": "the node says that `seat` is held (`code`: by what)",
    "lift": "the node says that it is held no more",
    "detach": "the node let go of a mailbox, which still holds `pos` messages",
    "delete": "the mailbox was destroyed, and `pos` messages with it",
    "command": "`msg` was stored in the seat's control mailbox",
    "obeyed": "the seat worked it",
    "fault": "something was done to `node` or to all: `code`",
    "calm": "faults are over",
    "drill": "in the calm, `code` begins",
    "over": "nothing more happens: what is left is judged",
    "note": "anything else worth a line in a trace",
}

Hear = Callable[[Record], None]


class History:
    """Takes records, shows each to whoever hears them, keeps the last few and a running hash.

    `now` is the world's time, which is stamped here.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._hash = hashlib.sha256()
        self._encode = msgspec.json.Encoder().encode
        self._hearers: list[Hear] = []
        self._by_kind: dict[str, list[Hear]] = {}
        self.last: deque[Record] = deque(maxlen=LAST)
        self.count = 0

    def hear(self, hearer: Hear, kinds: tuple[str, ...]) -> None:
        """Call `hearer` with each record of those kinds, in the order of registration."""
        for kind in kinds:
            self._by_kind.setdefault(kind, []).append(hearer)

    def hear_all(self, hearer: Hear) -> None:
        """Call `hearer` with every record, after those that asked for its kind."""
        self._hearers.append(hearer)

    def add(self, kind: str, **fields: object) -> None:
        """Something has just happened."""
        self.put(Record(self._now(), kind, **fields))  # type: ignore[arg-type]

    def put(self, record: Record) -> None:
        line = self._encode(record)
        self._hash.update(line)
        self.count += 1
        self.last.append(record)
        for hearer in self._by_kind.get(record.kind, ()):
            hearer(record)
        for hearer in self._hearers:
            hearer(record)

    @property
    def digest(self) -> str:
        """Of everything so far."""
        return self._hash.hexdigest()


def named(record: Record) -> dict[str, Any]:
    """What is set of it, under its name: `t` and `kind` always are."""
    fields = {name: getattr(record, name) for name in Record.__struct_fields__}
    return {name: value for name, value in fields.items() if value or name == "t"}


def told(record: Record) -> str:
    """A line for people: the time, the kind, and what is set."""
    words = [
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in named(record).items()
        if name not in ("t", "kind")
    ]
    return f"{record.t:10.3f} {record.kind:<17} {' '.join(words)}"
