"""A cron rule in a time zone: when it comes due, also where clocks are changed.

cronsim reads the rule and walks over times as a wall clock shows them; which instants those are
is decided here. A rule of fixed times (neither minute nor hour begins with `*`) comes due once
for each time that it names: in the first pass of an hour that happens twice, and at the end of
the gap where its time is left out. Any other rule is about how much time passes: it comes due in
both passes, and in no time that there is not. That is how Debian's cron has it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

FIELDS: Final = "minute, hour, day of month, month, day of week"
UTC_ZONE: Final = "UTC"

_FOLD: Final = timedelta(hours=3)
"""No zone turns its clocks back by more: a wall clock repeats nothing older than that."""

_MINUTE: Final = timedelta(minutes=1)
_NOT_PORTABLE: Final = {"localtime", "Factory"}
"""Of the zone database, but another zone on each machine, or none."""


@cache
def zones() -> frozenset[str]:
    """The names of all time zones, the same on every machine."""
    return frozenset(available_timezones() - _NOT_PORTABLE)


def normal(cron: str) -> str:
    """The rule as it is compared: white space and case say nothing."""
    return " ".join(cron.upper().split())


def rule_fault(cron: str) -> str:
    """Why this is no rule, beginning in the middle of a sentence; empty where it is one."""
    fields = len(cron.split())
    if fields != len(FIELDS.split(", ")):
        return f"has {fields} field{'' if fields == 1 else 's'}, and five are needed: {FIELDS}"
    try:
        walk = CronSim(cron, datetime(2024, 1, 1))
    except (CronSimError, ValueError) as error:
        return f"has a wrong {str(error).replace('Bad ', '')}; its fields are {FIELDS}"
    return "" if next(walk, None) is not None else "never comes due: there is no such day"


def instants(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    """Every instant (UTC) after `after` at which the rule comes due, in order, without end but
    for rules that come due no more within 50 years."""
    fields = cron.split()
    fixed = not fields[0].startswith("*") and not fields[1].startswith("*")
    found = _fixed if fixed else _flowing
    last = after
    for instant in found(cron, ZoneInfo(zone), after):
        if instant > last:
            last = instant
            yield instant


def label(instant: datetime, zone: str) -> str:
    """The instant as the zone's clocks show it, with their offset: without it the two passes of
    an hour that happens twice would have one name."""
    return instant.astimezone(ZoneInfo(zone)).isoformat(timespec="minutes")


def _fixed(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    for wall in CronSim(cron, _wall(after, zone)):
        while not _exists(wall, zone):
            wall += _MINUTE
        yield _first(wall, zone)


def _flowing(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """The second passes wait in a queue until the first ones are behind them."""
    second: deque[datetime] = deque()
    for wall in CronSim(cron, _wall(after, zone) - _turned_back(after, zone)):
        if not _exists(wall, zone):
            continue
        first, again = _first(wall, zone), _instant(wall.replace(fold=1), zone)
        while second and second[0] < first:
            yield second.popleft()
        yield first
        if again != first:
            second.append(again)
    yield from second


def _turned_back(after: datetime, zone: ZoneInfo) -> timedelta:
    """By how much the clocks go back soon after: so much of what they show comes again."""
    now, soon = _offset(after, zone), _offset(after + _FOLD, zone)
    return max(timedelta(0), now - soon)


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def _wall(instant: datetime, zone: ZoneInfo) -> datetime:
    """What the zone's clocks show, and nothing else: no zone, no pass."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def _first(wall: datetime, zone: ZoneInfo) -> datetime:
    return _instant(wall.replace(fold=0), zone)


def _instant(wall: datetime, zone: ZoneInfo) -> datetime:
    return wall.replace(tzinfo=zone).astimezone(UTC)


def _exists(wall: datetime, zone: ZoneInfo) -> bool:
    return _wall(_first(wall, zone), zone) == wall
