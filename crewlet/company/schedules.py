"""Schedules of a file: rules that come due, zones that there are, agents that can be given work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from crewlet.company.model import Unit
from crewlet.company.problems import Report, nearest, shown
from crewlet.company.record import Record
from crewlet.company.seats import Directory
from crewlet.schedule.entry import TIMEOUT_S, Schedule, Scope
from crewlet.schedule.rule import UTC_ZONE, rule_fault, zones


class _Scope(Struct, frozen=True):
    """Whose schedules these are: a role's by its handle, a unit's by its path."""

    record: Record
    type: Scope
    id: str
    unit: Unit | None = None


def read_timezone(record: Record, report: Report) -> str:
    """The company's own zone."""
    scheduling = record.record("scheduling")
    return UTC_ZONE if scheduling is None else _zone(scheduling, "timezone", UTC_ZONE, report)


def read_schedules(
    record: Record, directory: Directory, units: Sequence[Unit], timezone: str
) -> tuple[Schedule, ...]:
    """All of them, in the order of the file."""
    found = [
        schedule
        for scope in _scopes(record, directory, units)
        for schedule in _of(scope, directory, timezone)
    ]
    return tuple(sorted(found, key=lambda schedule: schedule.line))


def _scopes(record: Record, directory: Directory, units: Sequence[Unit]) -> Iterator[_Scope]:
    for placed in directory.placed:
        if placed.seat is not None and placed.record.has("schedules"):
            if placed.seat.is_agent:
                yield _Scope(placed.record, "role", placed.seat.handle)
            else:
                directory.report.add(
                    *placed.record.at("schedules"),
                    "a human has no schedules: no turn is run for this seat",
                )
    yield from _units(record, units, ())


def _units(record: Record, units: Sequence[Unit], path: tuple[str, ...]) -> Iterator[_Scope]:
    for inner, unit in zip(record.records("units"), units, strict=True):
        names = (*path, unit.name)
        yield _Scope(inner, "unit", "/".join(names), unit)
        yield from _units(inner, unit.units, names)


def _of(scope: _Scope, directory: Directory, timezone: str) -> Iterator[Schedule]:
    names: dict[str, int] = {}
    same: dict[str, Schedule] = {}
    for record in scope.record.records("schedules"):
        schedule = _schedule(record, scope, directory, timezone)
        first = names.setdefault(schedule.name, schedule.line)
        if first != schedule.line:
            directory.report.add(
                *record.at("name"),
                f"a schedule {shown(schedule.name)} stands beside it on line {first}",
            )
        twin = same.setdefault(schedule.id, schedule)
        if twin is not schedule:
            directory.report.add(
                record.mark,
                record.path,
                f"this is the schedule {shown(twin.name)} of line {twin.line} over again: the "
                "same times, text and target; one of them is enough",
            )
        yield schedule


def _schedule(record: Record, scope: _Scope, directory: Directory, timezone: str) -> Schedule:
    report = directory.report
    cron = record.line("cron")
    if cron and (fault := rule_fault(cron)):
        report.add(
            *record.at("cron"),
            f"{record.written('cron')} {fault}; for example `0 9 * * MON-FRI`",
        )
    return Schedule(
        scope_type=scope.type,
        scope=scope.id,
        name=record.line("name"),
        cron=cron,
        text=record.line("text").strip(),
        zone=_zone(record, "zone", timezone, report),
        target="lead" if record.line("target") == "lead" else "each",
        targets=tuple(_targets(record, scope, directory)),
        timeout_s=float(record.number("timeout_s", TIMEOUT_S)),
        jitter_s=int(record.number("jitter_s", 0)),
        line=record.mark.line,
    )


def _targets(record: Record, scope: _Scope, directory: Directory) -> Iterable[str]:
    """Handles of agents, at least one of them; else it is reported."""
    if scope.unit is None:
        if record.has("target"):
            directory.report.add(
                *record.at("target"), "a role's schedule is for the role itself; leave this out"
            )
        return (scope.id,)
    agents = [seat.handle for seat in directory.seats() if seat.is_agent]
    if record.line("target") != "lead":
        wanted = [handle for handle in scope.unit.seats if handle in agents]
        if not wanted and directory.whole:
            directory.report.add(
                record.mark,
                record.path,
                f"none of the roles in {shown(scope.unit.name)} itself is an agent, so nobody "
                "would get it; write it into a role, or into a unit with agents of its own",
            )
        return wanted
    lead = scope.unit.lead
    if lead in agents:
        return (lead,)
    if directory.whole:
        what = (
            f"its lead {shown(lead)} is a human, whom no turn wakes" if lead else "it has no lead"
        )
        directory.report.add(
            *record.at("target"),
            f"{shown(scope.unit.name)} can't have this: {what}; `each` is for its own agents",
        )
    return ()


def _zone(record: Record, key: str, default: str, report: Report) -> str:
    zone = record.line(key)
    if not zone or zone in zones():
        return zone or default
    hint = next((f"; did you mean {one!r}?" for one in zones() if one.lower() == zone.lower()), "")
    hint = hint or nearest(zone, sorted(zones())) or "; for example Europe/Berlin, or UTC"
    report.add(*record.at(key), f"there is no time zone {record.written(key)}{hint}")
    return default
