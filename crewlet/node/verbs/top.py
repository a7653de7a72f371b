"""`top`: one look at the whole node, cheap enough to be taken every second."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import psutil
from msgspec import Struct

from actors.admin import Caller
from crewlet.node.seats import SeatRow, seat_rows
from crewlet.node.verbs.operation import AnyOperation, Operation, Rows
from crewlet.node.view import NodeView

MIB: Final = 1024 * 1024
MOST: Final = 100


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
        node = self._node
        agents = [row for row in await seat_rows(node) if row.kind == "agent"]
        yield {
            "node": node.node_id,
            "at": node.clock.now(),
            "cpu_percent": self._process.cpu_percent(None),
            "rss_mib": round(self._process.memory_info().rss / MIB, 1),
            "running": len(node.turns.all_running()),
            "waiting": sum(row.waiting or 0 for row in agents),
            "in_flight": sum(row.in_flight or 0 for row in agents),
            "states": dict(Counter(row.state.partition(" (")[0] for row in agents)),
            "busiest": _busiest(agents, min(MOST, max(0, args.most))),
        }


def _busiest(agents: list[SeatRow], most: int) -> list[dict[str, Any]]:
    """Those that work or have mail, the most mail first."""
    busy = [row for row in agents if row.state != "idle" or row.waiting or row.in_flight]
    busy.sort(key=lambda row: (-((row.waiting or 0) + (row.in_flight or 0)), row.handle))
    return [
        {
            "handle": row.handle,
            "state": row.state,
            "waiting": row.waiting,
            "in_flight": row.in_flight,
            "turns": row.turns,
        }
        for row in busy[:most]
    ]
