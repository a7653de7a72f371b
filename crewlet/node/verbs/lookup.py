"""Finding what a verb is about, and refusing what there is not, with the way out."""

from __future__ import annotations

from typing import Final

from actors.admin import Refused
from actors.messages import BoxState, Description
from actors.node import ROUTER
from crewlet.company import Seat
from crewlet.node.view import NodeView

SHOWN: Final = 64
KNOWN: Final = 20


def agent_seat(node: NodeView, handle: str) -> Seat:
    """The seat of this handle that turns wake; Refused for any other."""
    seat = node.company.seat(handle)
    if seat is not None and seat.is_agent:
        return seat
    known = ", ".join(seat.handle for seat in node.company.agents()[:KNOWN])
    if seat is not None:
        what = f"{handle} is a human, whom no turn wakes"
    else:
        what = f"there is no seat {handle[:SHOWN]!r} in this company"
    raise Refused("unknown_seat", f"{what}; agent seats: {known} (`crewlet seats` shows all)")


async def consumer(node: NodeView, name: str) -> Description:
    """How the consumer of this name stands, a seat or the router; Refused where there is none, or
    this node has none."""
    if name != ROUTER:
        agent_seat(node, name)
    described = await node.runtime.describe(name)
    if described is None:
        raise Refused(
            "not_here",
            f"{node.node_id} does not work {name}; `crewlet consumer ls` shows what it "
            "works, `crewlet lease ls` who works what",
        )
    return described


def box_of(described: Description, name: str) -> BoxState:
    """One box of a consumer; Refused where it has none of this name."""
    for box in described.boxes:
        if box.box == name:
            return box
    names = ", ".join(box.box for box in described.boxes)
    raise Refused("unknown_box", f"{described.name} has no box {name[:SHOWN]!r}; it has: {names}")
