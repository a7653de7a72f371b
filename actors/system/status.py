"""Thespian's status answer for one cell. Waiting messages are shown by type, never formatted."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from actors.system.vocabulary import ActorStatus, expires_in

if TYPE_CHECKING:
    from actors.system.cell import Cell


def actor_status(cell: Cell, due: Sequence[float]) -> ActorStatus:
    """The status of `cell`; `due` are the loop times of its wake-ups."""
    base = cell.base
    parent = cell.parent.address if cell.parent is not None else base.system_address
    status: ActorStatus = ActorStatus(cell.address, cell.kind, base.system_address, parent)
    for child in cell.children or ():
        status.addChild(child)
    for message, sender in [*reversed(cell.batch), *cell.inbox]:
        status.addReceivedMessage(sender, cell.address, type(message).__name__)
    now = base.loop.time()
    status.addWakeups([(cell.address, expires_in(max(0.0, at - now))) for at in due])
    return status
