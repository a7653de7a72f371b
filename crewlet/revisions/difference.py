"""What is different when one company takes the place of another: in names, never in secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from crewlet.company import Company, Route, Seat, Unit

_OF_A_SEAT: Final = tuple(
    name for name in Seat.__struct_fields__ if name not in ("handle", "line", "agent_id")
)
_IN_FULL: Final = (
    "notification_coalesce_window_seconds",
    "notification_coalesce_max_batch",
    "notification_rate_limit",
)
_IN_NAME: Final = ("mission", "vision", "policies", "handler")


class SeatChange(Struct, frozen=True):
    """A seat that stays; `fields` are what is said of it in other words."""

    handle: str
    fields: tuple[str, ...]


class Difference(Struct, frozen=True, kw_only=True):
    """Empty where two files mean the same. Seats by handle; routes, integrations and settings as
    a line each (`+ github/issues.* -> dev`, `- slack`, `notification_rate_limit: 0 -> 5`)."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[SeatChange, ...] = ()
    routes: tuple[str, ...] = ()
    integrations: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__struct_fields__)


def difference(old: Company, new: Company) -> Difference:
    """What `new` changes about `old`."""
    before = {seat.handle: seat for seat in old.seats}
    after = {seat.handle: seat for seat in new.seats}
    return Difference(
        added=tuple(handle for handle in after if handle not in before),
        removed=tuple(handle for handle in before if handle not in after),
        changed=tuple(
            SeatChange(handle, fields)
            for handle, seat in after.items()
            if handle in before and (fields := _fields(before[handle], seat))
        ),
        routes=_lines(_routes(old), _routes(new)),
        integrations=_lines(_integrations(old), _integrations(new)),
        settings=_settings(old, new),
    )


def _fields(old: Seat, new: Seat) -> tuple[str, ...]:
    return tuple(name for name in _OF_A_SEAT if getattr(old, name) != getattr(new, name))


def _routes(company: Company) -> Mapping[str, object]:
    return dict.fromkeys(map(_route, company.routes))


def _route(route: Route) -> str:
    where = ", ".join(f"{name}={value}" for name, value in sorted(route.where.items()))
    return f"{route.event} -> {route.to}" + (f" where {where}" if where else "")


def _integrations(company: Company) -> Mapping[str, object]:
    """Each by its name. Secrets are compared, and told to nobody."""
    known = company.integrations
    named = {vendor: known.of(vendor) for vendor in known.__struct_fields__ if vendor != "generic"}
    generic = {f"generic/{name}": each for name, each in known.generic.items()}
    return {name: each for name, each in {**named, **generic}.items() if each is not None}


def _lines(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[str, ...]:
    """`-` what is gone, `+` what came, `~` what stays by its name and is another."""
    gone = [f"- {name}" for name in old if name not in new]
    came = [f"+ {name}" for name in new if name not in old]
    other = [f"~ {name}" for name in new if name in old and old[name] != new[name]]
    return (*gone, *came, *other)


def _settings(old: Company, new: Company) -> tuple[str, ...]:
    found = [name for name in _IN_NAME if getattr(old, name) != getattr(new, name)]
    if [*map(_words, old.units)] != [*map(_words, new.units)]:
        found.append("units")
    for name in _IN_FULL:
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            found.append(f"{name}: {before:g} -> {after:g}")
    return tuple(found)


def _words(unit: Unit) -> tuple[object, ...]:
    """A unit but for the lines it stands on."""
    own = (unit.name, unit.type, unit.purpose, unit.lead, unit.goals, unit.seats)
    return (*own, *map(_words, unit.units))
