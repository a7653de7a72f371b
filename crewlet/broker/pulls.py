"""The pulls of one client, found by their mailbox: thousands are attached, and one is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from actors.delivery import Mailbox
from crewlet.broker.pull import Pull


class Pulls:
    """A set. One mailbox has more than one while it is attached again."""

    def __init__(self) -> None:
        self._by_mailbox: dict[Mailbox, set[Pull]] = {}

    def __iter__(self) -> Iterator[Pull]:
        return iter([pull for pulls in self._by_mailbox.values() for pull in pulls])

    def add(self, pull: Pull) -> None:
        self._by_mailbox.setdefault(pull.mailbox, set()).add(pull)

    def discard(self, pull: Pull) -> None:
        pulls = self._by_mailbox.get(pull.mailbox, set())
        pulls.discard(pull)
        if not pulls:
            self._by_mailbox.pop(pull.mailbox, None)

    def clear(self) -> None:
        self._by_mailbox.clear()

    def of(self, mailbox: Mailbox) -> Collection[Pull]:
        return self._by_mailbox.get(mailbox, ())
