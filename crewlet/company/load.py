"""A company's file becomes a `Company`, or a list of everything that is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import structs

from crewlet.company.connections import read_integrations
from crewlet.company.handlers import read_handler
from crewlet.company.integrations import Integrations
from crewlet.company.keys import COMPANY_SECTIONS
from crewlet.company.model import Company, Route
from crewlet.company.problems import FileRefused, Mark, Problem, Report, nearest
from crewlet.company.record import Reader, Record
from crewlet.company.schedules import read_schedules, read_timezone
from crewlet.company.seats import (
    Directory,
    build_units,
    managed,
    place_roles,
)
from crewlet.company.yaml import MAX_BYTES, read_yaml

SOURCES: Final = (
    "github",
    "gitlab",
    "jira",
    "confluence",
    "slack",
    "mattermost",
    "plane",
    "generic",
)
_EVENT: Final = re.compile(r"([a-z]+)/(?:([a-z0-9][a-z0-9_-]*)/)?((?:[A-Za-z0-9_.:-]+\*?|\*))")


def load_company(path: Path, *, env: Mapping[str, str] | None = None) -> Company:
    """The company of a file. ConfigError lists all problems; nothing is loaded by halves."""
    company, report = _load(path, env)
    return _accepted(company, report)


def parse_company(
    text: str | bytes, *, name: str = "company.yaml", env: Mapping[str, str] | None = None
) -> Company:
    """The company of a text; `name` stands for the file in messages."""
    report = Report(name)
    return _accepted(_parse(text, report, env), report)


def check_company(path: Path, *, env: Mapping[str, str] | None = None) -> list[Problem]:
    """Everything that is wrong with a company's file, in its order; empty where it loads."""
    return _load(path, env)[1].problems


def check_text(
    text: str | bytes, *, name: str = "company.yaml", env: Mapping[str, str] | None = None
) -> list[Problem]:
    """The same for a text."""
    report = Report(name)
    _parse(text, report, env)
    return report.problems


def read_source(path: Path, report: Report) -> bytes | None:
    """The bytes of a file, at most one more than are allowed; None once reported."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        report.add(Mark(), "", f"the file can't be read: {error.strerror or error}")
    except ValueError:
        report.add(Mark(), "", "the file can't be read: this is no path")
    return None


def _load(path: Path, env: Mapping[str, str] | None) -> tuple[Company | None, Report]:
    report = Report(str(path))
    source = read_source(path, report)
    return (None if source is None else _parse(source, report, env)), report


def _accepted(company: Company | None, report: Report) -> Company:
    if report or company is None:
        raise FileRefused(report.problems)
    return company


def _parse(text: str | bytes, report: Report, env: Mapping[str, str] | None) -> Company | None:
    table = read_yaml(text, report)
    if table is None:
        return None
    reader = Reader(COMPANY_SECTIONS, os.environ if env is None else env, report)
    company = _build(reader.record(table, "company"), report)
    kept = text if isinstance(text, str) else text.decode("utf-8-sig", "replace")
    return structs.replace(company, source_text=kept.removeprefix("\ufeff"))


def _build(record: Record, report: Report) -> Company:
    """A company out of what could be read: good only while the report is empty."""
    directory = Directory(report)
    place_roles(record, record.line("name"), directory)
    if not directory.placed and not report:
        report.add(record.mark, "", "the company has no roles; write `roles:` here or in a unit")
    units = build_units(record, directory)
    integrations = read_integrations(record, report)
    timezone = read_timezone(record, report)
    window_s = record.number("notification_coalesce_window_seconds", 0.0)
    return Company(
        name=record.line("name"),
        mission=record.line("mission").strip(),
        vision=record.line("vision").strip(),
        policies=record.lines("policies"),
        seats=managed(directory, [inner for unit in units for inner in unit.walk()]),
        units=units,
        routes=tuple(_route(each, directory, integrations) for each in record.records("routes")),
        integrations=integrations,
        handler=read_handler(record, report),
        schedules=read_schedules(record, directory, units, timezone),
        timezone=timezone,
        notification_coalesce_window_seconds=float(window_s),
        notification_coalesce_max_batch=int(record.number("notification_coalesce_max_batch", 20)),
        notification_rate_limit=int(record.number("notification_rate_limit", 0)),
    )


def _route(record: Record, directory: Directory, integrations: Integrations) -> Route:
    event, to = record.line("event"), record.line("to")
    if event and (fault := _event_fault(event, integrations)):
        directory.report.add(*record.at("event"), fault.format(record.written("event")))
    return Route(
        event=event,
        to=directory.handle(to, record, "to") if to else "",
        where=record.filters("where"),
        line=record.mark.line,
    )


def _event_fault(event: str, integrations: Integrations) -> str:
    """What is wrong with a route's event, `{}` for the text itself; empty where nothing is."""
    match = _EVENT.fullmatch(event)
    if match is None or (match[2] and match[1] != "generic"):
        return (
            "{} names no event; write `source/type`, for example "
            "github/issues.opened, github/issues.* or github/*"
        )
    if match[1] not in SOURCES:
        hint = nearest(match[1], SOURCES) or f"; known: {', '.join(SOURCES)}"
        return f"no source is called {match[1]!r}{hint}"
    if match[1] != "generic" or (match[2] is None and match[3] == "*"):
        return ""
    if match[2] is None:
        return "{} names no source of yours; write `generic/NAME/TYPE`"
    known = integrations.generic
    return (
        ""
        if match[2] in known
        else "{} names nothing in `integrations.generic`" + nearest(match[2], known)
    )
