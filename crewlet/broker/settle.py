"""Telling JetStream what became of deliveries, in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Final, assert_never

import msgspec

from actors.delivery import Dead, Delivery, Done, HandBack, Retry, Verdict
from actors.failpoints import reached
from crewlet.broker.dead_letters import DeadLetters
from crewlet.broker.receipts import HAND_BACK
from crewlet.broker.topology import SECOND
from crewlet.broker.wire import Wire

CONFIRM_S: Final = 5.0

SAID: Final = 64
"""Acks of a mailbox that are remembered: more than are on their way at any time."""

BACK: Final = 1024
"""Hand-backs of a mailbox that are remembered until they come again: the server keeps its queue
of them in memory only, and forgets it when it is killed."""

_ACK: Final = b"+ACK"
_TERM: Final = b"+TERM"


class Settler:
    """Carries out verdicts. One that failed may be told again: each is idempotent."""

    def __init__(self, wire: Wire, dead_letters: DeadLetters) -> None:
        self._wire = wire
        self._dead_letters = dead_letters

    async def settle(self, delivery: Delivery, verdict: Verdict) -> None:
        """Done and Retry are sent. A HandBack is confirmed before this returns (the order of
        naks is the order of redelivery), a Dead is stored and then confirmed as taken out."""
        match verdict:
            case Done() | Retry():
                self.say([(delivery, verdict)])
            case HandBack():
                await self._confirmed(delivery, HAND_BACK)
                reached("mid_defer")
            case Dead(reason=reason):
                await self._dead_letters.store(delivery, reason)
                reached("after_dlq_before_term")
                await self._confirmed(delivery, _TERM)
            case _:
                assert_never(verdict)

    def say(self, verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
        """What is sent and not waited for: Done and Retry, and nothing else."""
        self._wire.send_soon([(delivery.receipt, _said(verdict)) for delivery, verdict in verdicts])

    async def _confirmed(self, delivery: Delivery, word: bytes) -> None:
        """A nak that is not confirmed loses against a pull that follows it."""
        await self._wire.request(delivery.receipt, word, wait_s=CONFIRM_S)


def _said(verdict: Verdict) -> bytes:
    match verdict:
        case Done():
            return _ACK
        case Retry(delay_s=delay_s):
            return _later(delay_s)
    raise AssertionError("what is confirmed is settled, not said")


def _later(delay_s: float) -> bytes:
    nanoseconds = int(delay_s * SECOND)
    if nanoseconds <= 0:
        return HAND_BACK
    return HAND_BACK + b" " + msgspec.json.encode({"delay": nanoseconds})


class Held:
    """What this process was handed of one mailbox, and what it last said about it.

    Words that were on their way when a connection broke may be lost; said again to the
    broker's own list of what is out, they are the truth, and the rest was lost on its way here.
    """

    def __init__(self) -> None:
        self._out: set[int] = set()
        self._resting: dict[int, float] = {}
        self._done: deque[int] = deque(maxlen=SAID)
        self._back: dict[int, None] = {}
        self.connection = 0

    @property
    def empty(self) -> bool:
        """Nothing is out, nothing rests, and nothing was handed back."""
        return not self._out and not self._resting and not self._back

    def took(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._out.add(delivery.position)
            self._resting.pop(delivery.position, None)
            self._back.pop(delivery.position, None)

    def told(self, position: int, verdict: Verdict) -> None:
        self._out.discard(position)
        self._resting.pop(position, None)
        if isinstance(verdict, Done):  # first what nearly all are
            self._done.append(position)
        elif isinstance(verdict, Retry):
            self._resting[position] = time.monotonic() + verdict.delay_s
        elif isinstance(verdict, HandBack):
            self._back[position] = None
            if len(self._back) > BACK:
                self._back.pop(next(iter(self._back)))

    def has(self, position: int) -> bool:
        """It was taken, and nothing was said of it yet."""
        return position in self._out

    def knows(self, position: int) -> bool:
        """Whether this process was ever handed the message, as far as it remembers."""
        known = (self._out, self._resting, self._done, self._back)
        return any(position in positions for positions in known)

    def word(self, position: int) -> bytes | None:
        """What to say about a message that the broker counts as out; None: it is here."""
        if position in self._out:
            return None
        if position in self._resting:
            return _later(self._resting[position] - time.monotonic())
        return _ACK if position in self._done else HAND_BACK
