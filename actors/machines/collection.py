"""What one drain gathers: how much to ask for, when it is enough, what goes on together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from actors.delivery import BatchOptions, Letter, Partition
from actors.machines.batch import partitions
from actors.machines.signals import Pull

IDLE_WAIT_S: Final = 3600.0
"""How long one idle fetch may last. It only bounds how often an idle seat is heard of: a
brake recalls it, and the broker's client keeps it alive through outages."""

SUSPECT: Final = 3
"""Deliveries after which a message is worked alone until the mailbox has shown a healthier
one: if its runs end the process, they do not use up the budget of those drained with it."""


class Collection:
    """The letters of the drain in hand; what exceeds its cap is the beginning of the next.

    The first pull of an attachment asks for one message: only its count tells whether the
    mail that a dead holder left is safe to drain together.
    """

    def __init__(self) -> None:
        self._letters: list[Letter] = []
        self._cap = 1
        self._deadline = 0.0
        self._probing = True
        self._asked = 1
        self._full = False

    def __len__(self) -> int:
        return len(self._letters)

    def begin(self, options: BatchOptions) -> None:
        """A new attachment."""
        self._cap = options.cap
        self._probing = True

    def first_pull(self) -> Pull:
        self._asked = 1 if self._probing else self._cap
        return Pull(self._asked, IDLE_WAIT_S)

    def add(self, letters: Sequence[Letter], now: float, options: BatchOptions) -> None:
        """What a pull brought at `now`. The options count from the first message on: the
        linger is fixed then, and does not slide."""
        if not self._letters:
            self._cap = options.cap
            self._deadline = now + options.window_s
            self._full = len(letters) >= self._asked
        self._letters.extend(letters)

    def next_pull(self, now: float) -> Pull | None:
        """What to ask for beside what is in hand; None when this is what goes on. A first pull
        that came full may have left mail behind: it asked for one, or under an older cap."""
        probing, self._probing = self._probing, False
        full, self._full = self._full, False
        if probing and any((letter.delivery.count or 1) > SUSPECT for letter in self._letters):
            self._probing = True
            return None
        room = self._cap - len(self._letters)
        if room > 0 and (full or now < self._deadline):
            return Pull(room, max(0.0, self._deadline - now))
        return None

    def take(self) -> Sequence[Partition]:
        """The partitions of one drain, at most the cap; the rest stays."""
        taken, self._letters = self._letters[: self._cap], self._letters[self._cap :]
        return partitions(taken)

    def take_all(self) -> Sequence[Partition]:
        """Everything in hand, to be given back."""
        taken, self._letters = self._letters, []
        return partitions(taken)
