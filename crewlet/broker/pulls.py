"""The pulls of one client, found by their mailbox: thousands are attached, and one is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from actors.delivery import Mailbox
from crewlet.broker import names
from crewlet.broker.pull import Pull


class Pulls:
    """A set. One mailbox has more than one while it is attached again."""

    def __init__(self) -> None:
        self._by_mailbox: dict[Mailbox, set[Pull]] = {}
        self._mailboxes: dict[str, Mailbox] = {}

    def __iter__(self) -> Iterator[Pull]:
        return iter([pull for pulls in self._by_mailbox.values() for pull in pulls])

    def add(self, pull: Pull) -> None:
        self._by_mailbox.setdefault(pull.mailbox, set()).add(pull)
        self._mailboxes[names.consumer(pull.mailbox)] = pull.mailbox

    def discard(self, pull: Pull) -> None:
        pulls = self._by_mailbox.get(pull.mailbox, set())
        pulls.discard(pull)
        if not pulls:
            self._by_mailbox.pop(pull.mailbox, None)
            self._mailboxes.pop(names.consumer(pull.mailbox), None)

    def clear(self) -> None:
        self._by_mailbox.clear()
        self._mailboxes.clear()

    def of(self, mailbox: Mailbox) -> Collection[Pull]:
        return self._by_mailbox.get(mailbox, ())

    def of_durable(self, name: str) -> Collection[Pull]:
        """Those of the mailbox whose durable is called so."""
        mailbox = self._mailboxes.get(name)
        return () if mailbox is None else tuple(self.of(mailbox))
