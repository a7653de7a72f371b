"""What the queue's suite needs of the broker under test."""

from __future__ import annotations

from typing import Protocol

from crewlet.broker.port import CompanyBroker


class QueueHarness(Protocol):
    """The broker that the queues of a case run on; the clients are the suite's to stop."""

    @property
    def quiet_s(self) -> float:
        """How long a case listens before it believes that nothing comes. Beside every such
        silence stands something that does come: a broker that is slow passes no case by it."""

    @property
    def slack_s(self) -> float:
        """How late a timer of this broker may be seen: 0 in virtual time."""

    def name(self) -> str:
        """A handle that no other case and no earlier run of this broker used."""

    async def client(self, *, started: bool = True) -> CompanyBroker:
        """Another node's client of the one broker."""

    async def down(self) -> None:
        """Cut every client off. Only for `needs="outage"`."""

    async def up(self) -> None:
        """Let them reach it again; they find back by themselves."""
