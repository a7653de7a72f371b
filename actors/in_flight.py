"""What the gateway keeps: attachments, what is in flight through them, lives being cleared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct, field

from actors.delivery import Delivery, Mailbox
from actors.messages import AttachBox, SettleBox
from actors.ports import Attachment
from actors.strays import Look
from actors.system import Address
from actors.tenure import Tenure


class Entry(Struct):
    """One attachment, from the wish to the release. `over`: its owner lives another life, or
    (`forsaken`) has lost the mailbox to somebody else; `answered`: the broker has said whether it
    attaches; `idle`: no fetch is outstanding."""

    ticket: int
    owner: Address
    wanted: AttachBox
    attachment: Attachment | None = None
    fetching: bool = False
    releasing: bool = False
    over: bool = False
    forsaken: bool = False
    look: Look | None = None
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    idle: asyncio.Event = field(default_factory=asyncio.Event)


class Attachments:
    """By ticket, and by owner: a node has thousands of them, an owner a few."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._tickets: dict[Address, dict[int, None]] = {}

    def add(self, entry: Entry) -> None:
        self._entries[entry.ticket] = entry
        self._tickets.setdefault(entry.owner, {})[entry.ticket] = None

    def get(self, ticket: int) -> Entry | None:
        return self._entries.get(ticket)

    def all(self) -> list[Entry]:
        return list(self._entries.values())

    def drop(self, ticket: int) -> None:
        """Nothing where there is none."""
        entry = self._entries.pop(ticket, None)
        if entry is not None:
            tickets = self._tickets[entry.owner]
            del tickets[ticket]
            if not tickets:
                del self._tickets[entry.owner]

    def of(self, owner: Address) -> list[Entry]:
        """Its attachments, in the order of their tickets."""
        return [self._entries[ticket] for ticket in self._tickets.get(owner, ())]


class Held(Struct, frozen=True):
    """A delivery that was handed to `owner` in its `life` and is not settled."""

    owner: Address
    life: int
    delivery: Delivery
    since: float


class Settling(Struct, frozen=True):
    """A settlement that the broker has not taken yet."""

    owner: Address
    wanted: SettleBox
    landed: asyncio.Event = field(default_factory=asyncio.Event)


class Clearing(Struct, frozen=True):
    """First what is under way for the former lives ends, then what they `held` goes back."""

    asker: Address
    owner: Address
    life: int
    stale: tuple[Entry, ...]
    settling: tuple[Settling, ...]
    earlier: Clearing | None
    held: list[Held] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)


def key_of(delivery: Delivery) -> tuple[Mailbox, str]:
    """A receipt names one delivery of one message: a later delivery of it has another."""
    return delivery.mailbox, delivery.receipt


def in_force(tenure: Tenure | None, now: Callable[[], float]) -> Callable[[], bool]:
    """Whether the broker may still be told anything under this tenure."""
    return lambda: tenure is None or tenure.may_settle(now())


def is_former(entry: Entry, life: int) -> bool:
    return entry.wanted.life < life and not entry.over
