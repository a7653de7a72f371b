"""Roles and units of a file become seats: handles, ids, accounts, leads and who manages whom."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct, field, structs

from crewlet.company.handlers import read_handler
from crewlet.company.model import Contact, Placement, Seat, Unit, agent_id, fold
from crewlet.company.placement import read_placement
from crewlet.company.problems import Mark, Report, nearest, shown
from crewlet.company.record import Record
from crewlet.topics import is_handle

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_SLUG_GAP: Final = re.compile(r"[^a-z0-9]+")
_AT_SIGN: Final = ("github_login", "gitlab_username")

HANDLE_RULE: Final = "small letters, digits, '-' and '_', at most 63, a letter or digit first"


class Placed(Struct, frozen=True):
    """A role of the file with the seat that was made of it, None where none could be."""

    record: Record
    seat: Seat | None


class _Role(Struct, frozen=True):
    """A role as it stands in the file: in which units, and where it may be worked."""

    record: Record
    path: tuple[str, ...]
    placement: Placement | None


class Directory(Struct):
    """Who is who while the file is being built. `whole` is false once a role fell out, and
    then a name that nobody has may simply be the one that fell out."""

    report: Report
    placed: list[Placed] = field(default_factory=list)
    whole: bool = True

    def seats(self) -> list[Seat]:
        return [each.seat for each in self.placed if each.seat is not None]

    def handle(self, who: str, record: Record, key: str, where: str = "") -> str:
        """The handle that a handle or a role name in the file means; empty once reported."""
        mark, path = record.at(key)
        path += where
        if any(seat.handle == who for seat in self.seats()):
            return who
        named = [seat for seat in self.seats() if seat.name == who]
        if len(named) == 1:
            return named[0].handle
        if named:
            handles = ", ".join(seat.handle for seat in named)
            self.report.add(mark, path, f"{len(named)} roles bear this name; say which: {handles}")
        elif self.whole:
            known = [word for seat in self.seats() for word in (seat.handle, seat.name)]
            written = record.written(key) if not where else shown(who)
            self.report.add(mark, path, f"no role is called {written}{nearest(who, known)}")
        return ""


def place_roles(record: Record, company: str, directory: Directory) -> None:
    """Makes a seat of every role in the file, in the order of the file."""
    found = sorted(_roles(record, (), None, directory.report), key=lambda each: each.record.mark)
    for role in found:
        _place(role, company, directory)
    _check_accounts(directory)


def _roles(
    record: Record, path: tuple[str, ...], around: Placement | None, report: Report
) -> Iterable[_Role]:
    for role in record.records("roles"):
        yield _Role(role, path, read_placement(role, report, around))
    for unit in record.records("units"):
        inner = read_placement(unit, report, around)
        yield from _roles(unit, (*path, unit.line("name")), inner, report)


def _place(found: _Role, company: str, directory: Directory) -> None:
    role, path = found.record, found.path
    handle = _handle(role, directory)
    kind: Literal["agent", "human"] = "human" if role.line("kind") == "human" else "agent"
    handler = read_handler(role, directory.report)
    if kind == "human" and role.has("handler"):
        directory.report.add(
            *role.at("handler"), "a human has no handler: nothing is run for this seat"
        )
    if kind == "human" and role.has("placement"):
        directory.report.add(
            *role.at("placement"), "a human has no placement: no node works this seat"
        )
    if not handle or not role.line("name"):
        directory.whole = False
        directory.placed.append(Placed(role, None))
        return
    seat = Seat(
        handle=handle,
        name=role.line("name"),
        kind=kind,
        unit=path[-1] if path else "",
        unit_path=path,
        goal=role.line("goal").strip(),
        backstory=role.line("backstory").strip(),
        responsibilities=role.lines("responsibilities"),
        email=_email(role, directory.report),
        contact=_contact(role, directory.report),
        agent_id=agent_id(company, handle) if kind == "agent" and company else "",
        handler=handler,
        placement=found.placement if kind == "agent" else None,
        line=role.mark.line,
    )
    directory.placed.append(Placed(role, seat))


def _handle(role: Record, directory: Directory) -> str:
    report = directory.report
    if role.has("handle"):
        handle = role.line("handle")
        if handle and not is_handle(handle):
            report.add(*role.at("handle"), f"{role.written('handle')} is no handle: {HANDLE_RULE}")
            return ""
    else:
        handle = slug(role.line("name"))
        if role.line("name") and not is_handle(handle):
            report.add(
                *role.at("name"),
                f"no handle can be made from the name {role.written('name')}; "
                "write `handle:` beside it",
            )
            return ""
    first = next((seat for seat in directory.seats() if seat.handle == handle), None)
    if first is None:
        return handle
    key = "handle" if role.has("handle") else "name"
    made = "" if key == "handle" else " (made from the name)"
    report.add(
        *role.at(key),
        f"the handle {shown(handle)}{made} is already that of the role on line {first.line}",
    )
    return ""


def slug(name: str) -> str:
    """The handle that a name gives by itself; empty where it has letters that no handle has."""
    small = name.lower()
    if any(character.isalnum() and not character.isascii() for character in small):
        return ""
    return _SLUG_GAP.sub("-", small).strip("-")


def _contact(role: Record, report: Report) -> Contact:
    record = role.record("contact")
    if record is None:
        return Contact()
    accounts = {kind: record.line(kind) for kind in Contact.__struct_fields__}
    for kind, account in accounts.items():
        if any(character.isspace() for character in account):
            report.add(*record.at(kind), f"{record.written(kind)} holds a space; no account does")
        elif account.startswith("@") and kind in _AT_SIGN:
            report.add(*record.at(kind), f"write {record.written(kind)} without the '@'")
    return Contact(**accounts)


def _email(role: Record, report: Report) -> str:
    email = role.line("email")
    if email and _EMAIL.fullmatch(email) is None:
        report.add(*role.at("email"), f"{role.written('email')} is no e-mail address")
    return email


def _check_accounts(directory: Directory) -> None:
    """One account, one seat: what arrives for it could not be told apart otherwise."""
    first: dict[tuple[str, str], tuple[str, Mark]] = {}
    for each in directory.placed:
        owner = each.record.line("handle") or each.record.line("name")
        for record, kind in _accounts(each.record):
            mark, path = record.at(kind)
            taken = first.setdefault((kind, fold(record.line(kind))), (owner, mark))
            if taken == (owner, mark):
                continue
            directory.report.add(
                mark,
                path,
                f"the account {record.written(kind)} already belongs to {shown(taken[0])} on "
                f"line {taken[1].line} (upper and lower case are the same there)",
            )


def _accounts(role: Record) -> Iterable[tuple[Record, str]]:
    contact = role.record("contact")
    if contact is not None:
        yield from ((contact, kind) for kind in Contact.__struct_fields__ if contact.line(kind))
    if role.line("email"):
        yield role, "email"


def build_units(record: Record, directory: Directory) -> tuple[Unit, ...]:
    """The tree of units; their leads are known seats, and names are unique among siblings."""
    units: list[Unit] = []
    for inner in record.records("units"):
        name = inner.line("name")
        first = next((unit for unit in units if name and unit.name == name), None)
        if first is not None:
            directory.report.add(
                *inner.at("name"), f"a unit {shown(name)} stands beside it on line {first.line}"
            )
        lead = inner.line("lead")
        roles = {id(role) for role in inner.records("roles")}
        units.append(
            Unit(
                name=name,
                type=inner.line("type"),
                purpose=inner.line("purpose").strip(),
                lead=directory.handle(lead, inner, "lead") if lead else "",
                goals=inner.lines("goals"),
                seats=tuple(
                    each.seat.handle
                    for each in directory.placed
                    if each.seat and id(each.record) in roles
                ),
                units=build_units(inner, directory),
                line=inner.mark.line,
            )
        )
    return tuple(units)


def managed(directory: Directory, units: Iterable[Unit]) -> tuple[Seat, ...]:
    """The seats, each with whom it manages: those it names, then those of units it leads."""
    led: dict[str, list[str]] = {}
    for unit in units:
        led.setdefault(unit.lead, []).extend(unit.seats)
    return tuple(
        structs.replace(each.seat, manages=_manages(each.seat, each.record, led, directory))
        for each in directory.placed
        if each.seat is not None
    )


def _manages(
    seat: Seat, record: Record, led: dict[str, list[str]], directory: Directory
) -> tuple[str, ...]:
    named = []
    for index, who in enumerate(record.lines("manages")):
        handle = directory.handle(who, record, "manages", f"[{index}]")
        if handle == seat.handle:
            mark, path = record.at("manages")
            directory.report.add(mark, f"{path}[{index}]", "a role can't manage itself")
        elif handle:
            named.append(handle)
    inferred = [handle for handle in led.get(seat.handle, []) if handle != seat.handle]
    return tuple(dict.fromkeys([*named, *inferred]))
