"""The seat: an actor that owns its inbox, control and reflect mailboxes."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from actors.mail import MailActor
from actors.plan import Plan, plan_of
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

    def __init__(self, plan: Plan, gateway: Address) -> None:
        assert set(plan.boxes) == {INBOX, CONTROL, REFLECT}
        super().__init__(plan, gateway)


def seat_plan(spec: SeatSpec) -> Plan:
    """What a seat is to do, before it is established."""
    boxes = {INBOX: spec.inbox, CONTROL: spec.control, REFLECT: spec.reflect}
    plan = plan_of(spec.handle, boxes)
    plan.boxes[INBOX].holds = dict.fromkeys(spec.holds)
    return plan
