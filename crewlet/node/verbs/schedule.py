"""Verbs about schedules: what comes next, and what became of the last."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from actors.admin import Caller
from crewlet.node.verbs.operation import AnyOperation, Nothing, Operation, Rows
from crewlet.node.view import NodeView
from crewlet.schedule.entry import Schedule
from crewlet.schedule.fires import next_fire
from crewlet.schedule.memory import Known, Memories


class ScheduleRow(Struct, frozen=True):
    """One entry. Times are labels: as its zone's clocks show them, with their offset. `outcome`
    says what became of `last`; both are empty until something came due."""

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
        )
