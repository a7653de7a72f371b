"""Every seat of the company, and what it is doing: the rows of `crewlet seats`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from actors.delivery import Mailbox
from actors.messages import BoxState
from actors.ports import BrokerError, MailboxState
from actors.seat import INBOX
from crewlet import topics
from crewlet.company import Contact, Seat
from crewlet.inbound.outage import Outage
from crewlet.inbound.outages import PROVIDER
from crewlet.node.view import NodeView

AT_A_TIME: Final = 64
"""Seats that are asked at once: thousands would keep one another, and the node, waiting."""


class SeatRow(Struct, frozen=True, kw_only=True):
    """`state` is a word, and in brackets what holds the seat or what it works on. `waiting`
    and `in_flight` are the broker's counts, None while it does not answer. `turns` are those that
    this node worked since it started, None where it is another node's to know."""

    handle: str
    name: str
    kind: str
    unit: str
    contact: Mapping[str, str]
    state: str
    owner: str = ""
    waiting: int | None = None
    in_flight: int | None = None
    turns: int | None = None
    last_turn: datetime | None = None


async def seat_rows(node: NodeView) -> list[SeatRow]:
    """In the order of the company's file."""
    return await rows_of(node, node.company.seats, await mail_of(node, topics.INBOXES) or {})


async def mail_of(node: NodeView, pattern: str) -> Mapping[Mailbox, MailboxState] | None:
    """As the broker counts it; None while it does not answer: who works what is known here."""
    with contextlib.suppress(BrokerError):
        return {state.mailbox: state for state in await node.broker.list(pattern)}
    return None


async def rows_of(
    node: NodeView, seats: Sequence[Seat], states: Mapping[Mailbox, MailboxState]
) -> list[SeatRow]:
    """Of these seats, by what the broker says of their mailboxes."""
    rows: list[SeatRow] = []
    for start in range(0, len(seats), AT_A_TIME):
        few = seats[start : start + AT_A_TIME]
        rows += await asyncio.gather(*(_row(node, seat, states) for seat in few))
    return rows


async def seat_row(node: NodeView, seat: Seat) -> dict[str, Any]:
    """The row of one seat, by key."""
    mail = await mail_of(node, topics.inbox(seat.handle)) or {}
    return msgspec.structs.asdict(await _row(node, seat, mail))


async def _row(node: NodeView, seat: Seat, states: Mapping[Mailbox, MailboxState]) -> SeatRow:
    contact = {
        kind: name for kind in Contact.__struct_fields__ if (name := getattr(seat.contact, kind))
    }
    known = SeatRow(
        handle=seat.handle,
        name=seat.name,
        kind=seat.kind,
        unit=seat.unit,
        contact=contact,
        state="human",
    )
    if not seat.is_agent:
        return known
    mail = states.get(topics.inbox_of(seat.handle))
    owner = node.fleet.owner_of(seat.handle) or ""
    tally = node.turns.tally(seat.handle) if owner in ("", node.node_id) else None
    return msgspec.structs.replace(
        known,
        state=await _state(node, seat),
        owner=owner,
        waiting=mail.waiting if mail else None,
        in_flight=mail.in_flight if mail else None,
        turns=tally.turns if tally else None,
        last_turn=tally.last_turn if tally else None,
    )


async def _state(node: NodeView, seat: Seat) -> str:
    """What a person wants to know first: does it work, and if not, what is in its way."""
    owner = node.fleet.owner_of(seat.handle)
    if owner is not None and owner != node.node_id:
        return f"on {owner}"
    try:
        described = await node.runtime.describe(seat.handle)
    except TimeoutError:
        return "silent"
    if described is None:
        return "absent"
    box = next(box for box in described.boxes if box.box == INBOX)
    if turn := node.turns.running(seat.handle):
        if turn.overdue:
            return f"stuck ({turn.turn_id}: {turn.overdue})"
        return f"working ({turn.conversation})"
    outage = node.outages.holding(seat.handle)
    if outage is not None and PROVIDER in box.holds:
        return f"{box_state(box)}: {outage_text(outage)}"
    return box_state(box)


def outage_text(outage: Outage) -> str:
    """Since when, why, and when it is asked again; times are UTC."""
    same_day = outage.since.date() == outage.next_at.date()
    next_at = f"{outage.next_at:%H:%M:%S}" if same_day else f"{outage.next_at:%Y-%m-%d %H:%M:%S}"
    since = f"unavailable since {outage.since:%Y-%m-%d %H:%M:%S} UTC"
    return f"{since} ({outage.reason}); next try {next_at}"


def box_state(box: BoxState, *, turn: bool = False) -> str:
    """How one box stands, as a word and what is in its way. `turn`: one of its seat runs, without
    which an inbox that has mail in hand waits for one."""
    if not box.attached:
        return box.state
    if brakes := brakes_of(box):
        return f"resting ({', '.join(brakes)})"
    if box.running:
        return "waiting for a slot" if box.box == INBOX and not turn else "working"
    return {"pulling": "idle"}.get(box.state, box.state)


def brakes_of(box: BoxState) -> list[str]:
    """What keeps it from taking anything new, by name."""
    named = {"quiesced": box.quiesced, "deferred": box.deferred, "draining": box.paused}
    holds = [f"held: {hold}" for hold in box.holds]
    return [name for name, is_set in named.items() if is_set] + holds
