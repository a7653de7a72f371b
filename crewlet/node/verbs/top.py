"""`top`: one look at the whole node, cheap enough to be taken every second."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import psutil
from msgspec import Struct

from actors.admin import Caller
from actors.ports import MailboxState
from crewlet import topics
from crewlet.inbound.wakers import WINDOW
from crewlet.node.seats import SeatRow, mail_of, rows_of
from crewlet.node.verbs.operation import AnyOperation, Operation, Rows
from crewlet.node.view import NodeView

MIB: Final = 1024 * 1024
MOST: Final = 100
MINUTES: Final = WINDOW.total_seconds() / 60


class Look(Struct, frozen=True, forbid_unknown_fields=True):
    """`most`: how many of the busiest seats are named."""

    most: int = 10


class TopVerbs:
    """Keeps its process: its share of a core is counted from one look to the next."""

    def __init__(self, node: NodeView) -> None:
        self._node = node
        self._process = psutil.Process(os.getpid())

    def table(self) -> Mapping[str, AnyOperation]:
        return {"top": Operation(Look, self.top)}

    async def top(self, args: Look, caller: Caller) -> Rows:
        """Only the busiest seats are asked how they stand: thousands that rest cost nothing. Of
        their mail nothing is said while the broker does not answer."""
        node = self._node
        counted = await mail_of(node, topics.INBOXES)
        mail = counted or {}
        waiting = sum(state.waiting for state in mail.values())
        in_flight = sum(state.in_flight for state in mail.values())
        turns = {turn.seat for turn in node.turns.all_running()}
        agents = [seat.handle for seat in node.company.agents()]
        sizes = {handle: _size(mail.get(topics.inbox_of(handle))) for handle in agents}
        busy = sorted(
            (handle for handle in agents if sizes[handle] or handle in turns), key=_by(sizes)
        )
        named = [seat for handle in busy[: _most(args)] if (seat := node.company.seat(handle))]
        yield {
            "node": node.node_id,
            "at": node.clock.now(),
            "cpu_percent": self._process.cpu_percent(None),
            "rss_mib": round(self._process.memory_info().rss / MIB, 1),
            "running": len(node.turns.all_running()),
            "waiting": None if counted is None else waiting,
            "in_flight": None if counted is None else in_flight,
            "seats": len(agents),
            "here": sum(node.fleet.owner_of(handle) == node.node_id for handle in agents),
            "busy": len(busy),
            "busiest": [self._row(row) for row in await rows_of(node, named, mail)],
        }

    def _row(self, row: SeatRow) -> dict[str, Any]:
        """`waker` is whoever woke it most in the last ten minutes; it and the turns of a seat are
        known on its own node only."""
        here = row.turns is not None
        waker = self._node.turns.tally(row.handle).wakes.most(self._node.clock.now())
        per_minute = 0.0 if waker is None else round(waker.total / MINUTES, 1)
        return {
            "handle": row.handle,
            "owner": row.owner,
            "state": row.state,
            "waiting": row.waiting,
            "in_flight": row.in_flight,
            "turns": row.turns,
            "turns_per_minute": per_minute if here else None,
            "waker": waker.who if here and waker is not None else "",
        }


def _size(state: MailboxState | None) -> int:
    return state.waiting + state.in_flight if state is not None else 0


def _by(sizes: Mapping[str, int]) -> Callable[[str], tuple[int, str]]:
    """The most mail first."""
    return lambda handle: (-sizes[handle], handle)


def _most(args: Look) -> int:
    return min(MOST, max(0, args.most))
