"""Topics of seats: what nobody keeps there is refused, and on no other topic (contract 279)."""

from __future__ import annotations

from typing import Final

from actors.delivery import Mailbox
from actors.ports import NoMailbox
from crewlet import topics

_OF_SEAT: Final = (topics.inbox_of, topics.control_of, topics.reflect_of)


def mailbox_of(topic: str) -> Mailbox | None:
    """The mailbox that a seat has on its inbox, control or reflect; None for any other topic."""
    handle = topics.handle_of(topic)
    if handle is None:
        return None
    return next(box for of in _OF_SEAT if (box := of(handle)).topic == topic)


def no_mailbox(topic: str) -> NoMailbox:
    return NoMailbox(
        f"no mailbox covers {topic}, and nothing was kept: a seat's mailboxes are made when a "
        "node starts with a company file that has the seat; `crewlet seats` lists those there are"
    )
