"""Verbs about schedules: what comes next, and what became of the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from actors.admin import Caller
from crewlet.node.verbs.operation import AnyOperation, Nothing, Operation, Rows
from crewlet.node.view import NodeView
from crewlet.schedule.entry import Schedule
from crewlet.schedule.fires import next_fire
from crewlet.schedule.memory import Known, Memories

LISTED: Final = 3
"""Commands that a note spells out."""


class ScheduleRow(Struct, frozen=True):
    """One entry. Times are labels: as its zone's clocks show them, with their offset. `outcome`
    says what became of `last`; both are empty until something came due. `note` says what to do,
    where something is."""

    scope: str
    name: str
    cron: str
    zone: str
    target: str
    targets: tuple[str, ...]
    next: str
    last: str
    outcome: str
    since: str
    note: str = ""


class ScheduleVerbs:
    """One coroutine a verb."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        return {"schedule.ls": Operation(Nothing, self.schedules)}

    async def schedules(self, _: Nothing, caller: Caller) -> Rows:
        """From the company as this node has it, and from what the fleet remembers."""
        memory = await Memories(self._node.broker.store).read()
        for entry in self._node.company.schedules:
            yield self._row(entry, None if memory is None else memory.entries.get(entry.id))

    def _row(self, entry: Schedule, known: Known | None) -> ScheduleRow:
        coming = next_fire(entry, self._node.clock.now())
        return ScheduleRow(
            scope=f"{entry.scope_type} {entry.scope}",
            name=entry.name,
            cron=entry.cron,
            zone=entry.zone,
            target="" if entry.scope_type == "role" else entry.target,
            targets=entry.targets,
            next="" if coming is None else coming.label,
            last="" if known is None else known.last,
            outcome="" if known is None else known.outcome,
            since="" if known is None else known.since.isoformat(timespec="seconds"),
            note="" if known is None else _note(known.without),
        )


def _note(without: Sequence[str]) -> str:
    """Where tasks were lost because there was no inbox to put them into, and the way out."""
    if not without:
        return ""
    ways = " and ".join(f"`crewlet seat attach {handle}`" for handle in without[:LISTED])
    more = f", and so on for {len(without) - LISTED} more" if len(without) > LISTED else ""
    return f"no mailbox: {', '.join(without)}; {ways} makes one{more}, before the next fire"
