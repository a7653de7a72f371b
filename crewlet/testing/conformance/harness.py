"""What a suite needs of the broker under test, and the words that its cases are written in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from actors.delivery import Delivery, Done, Mailbox
from actors.ports import Attachment, MailboxState, Receipt
from crewlet import topics
from crewlet.broker.port import CompanyBroker

SOON_S: Final = 10.0
"""How long a case waits for what must come. It is over as soon as it came."""


class Harness(Protocol):
    """The broker under test. Whoever runs a case stops the clients afterwards."""

    @property
    def quiet_s(self) -> float:
        """How long a case listens before it believes that nothing comes."""

    @property
    def slack_s(self) -> float:
        """How late a timer of this broker may be seen: 0 in virtual time."""

    def name(self) -> str:
        """A handle that no other case and no earlier run of this broker used."""

    async def client(self, *, started: bool = True) -> CompanyBroker:
        """Another node's client of the one broker."""

    async def restart(self) -> None:
        """Stop the broker and start it on the same storage. Only for `needs="restart"`."""


class Seat:
    """A mailbox of the case's own, a client and its attachment."""

    def __init__(self, client: CompanyBroker, mailbox: Mailbox, attachment: Attachment) -> None:
        self.client = client
        self.mailbox = mailbox
        self.attachment = attachment

    async def send(self, *bodies: str) -> list[Receipt]:
        """Publish to the mailbox's topic, each under an id of its own."""
        return [await send(self.client, self.mailbox.topic, body) for body in bodies]

    async def fetch(self, most: int = 20, wait_s: float = SOON_S) -> Sequence[Delivery]:
        return await self.client.fetch(self.attachment, most, wait_s)

    async def take(self, number: int) -> list[Delivery]:
        """Exactly so many deliveries, by as many fetches as it needs."""
        taken: list[Delivery] = []
        while len(taken) < number:
            some = await self.fetch(number - len(taken))
            assert some, f"{len(taken)} of {number} messages came, then nothing"
            taken += some
        return taken

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        await self.client.settle([(delivery, Done()) for delivery in deliveries])


async def seat(harness: Harness, *, mailbox: Mailbox | None = None) -> Seat:
    """A new client attached to the mailbox: a new one, unless it is given."""
    client = await harness.client()
    box = mailbox or topics.inbox_of(harness.name())
    await client.ensure(box)
    return Seat(client, box, await client.attach(box, epoch=1))


async def send(client: CompanyBroker, topic: str, body: str) -> Receipt:
    """Publish under an id that only this topic and body have."""
    return await client.publish(topic, body.encode(), message_id=f"{topic}/{body}")


def bodies(deliveries: Sequence[Delivery]) -> list[str]:
    return [delivery.body.decode() for delivery in deliveries]


def counts(deliveries: Sequence[Delivery]) -> list[int | None]:
    return [delivery.count for delivery in deliveries]


async def state(client: CompanyBroker, mailbox: Mailbox) -> MailboxState | None:
    """What `list` says of one mailbox."""
    states = await client.list(mailbox.topic)
    return next((state for state in states if state.mailbox == mailbox), None)


async def settled_to(client: CompanyBroker, mailbox: Mailbox, waiting: int, held: int) -> None:
    """The mailbox comes to these numbers: an answer that was sent is not yet one that arrived."""
    wanted = MailboxState(mailbox=mailbox, waiting=waiting, in_flight=held)
    deadline = now() + SOON_S
    while (seen := await state(client, mailbox)) != wanted:
        assert now() < deadline, f"{seen} instead of {wanted}"
        await asyncio.sleep(0.01)


def now() -> float:
    return asyncio.get_running_loop().time()


async def pass_time(seconds: float) -> None:
    """Time is the subject of the case: nothing is awaited by this."""
    await asyncio.sleep(seconds)
