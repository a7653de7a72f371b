"""The seat: an actor that owns its inbox, control and reflect mailboxes."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from actors.machines.signals import Hold
from actors.mail import MailActor
from actors.ports import Consumed
from actors.system import Address

INBOX: Final = "inbox"
CONTROL: Final = "control"
REFLECT: Final = "reflect"


class SeatSpec(Struct, frozen=True):
    """What a seat needs to live: its three mailboxes, and what is done with their mail.

    `holds` are taken on the inbox before it is attached: nothing slips past them.
    """

    handle: str
    inbox: Consumed
    control: Consumed
    reflect: Consumed
    reclaim: bool = False
    holds: tuple[str, ...] = ()


class SeatActor(MailActor):
    """Works the inbox one partition at a time; control is never behind it.

    Each box has its own consumer: while a long run keeps the inbox held, what ends that run
    comes through control.
    """

    def __init__(self, spec: SeatSpec, gateway: Address) -> None:
        boxes = {INBOX: spec.inbox, CONTROL: spec.control, REFLECT: spec.reflect}
        super().__init__(spec.handle, gateway, boxes)
        for hold in spec.holds:
            self._boxes[INBOX].machine.step(Hold(hold))
