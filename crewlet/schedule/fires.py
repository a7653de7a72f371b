"""Which fires are due, and which are past saving: a function of two moments, without a clock.

Nothing here knows of ticks, restarts or machines that slept. Between the last moment looked at
and now an entry fires once at the most, for the newest instant of its rule, and only while that
is younger than half of the time until the next one (from two minutes to two hours). What lies
before it was missed, and is said to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Final

from msgspec import Struct

from crewlet.schedule.entry import Schedule
from crewlet.schedule.rule import instants, label

SHORTEST_WINDOW: Final = timedelta(seconds=120)
LONGEST_WINDOW: Final = timedelta(seconds=7200)
"""How late a fire may be: at least, and at most."""

MOST_MISSED: Final = 10_000
"""How many missed instants of an entry are counted; `Missed.more` says that there are others."""

_JUST_BEFORE: Final = timedelta(microseconds=1)


class Standing(Struct, frozen=True):
    """An entry, and since when it has been what it is: it fires for nothing before that."""

    entry: Schedule
    since: datetime


class Fire(Struct, frozen=True):
    """An entry at one instant (UTC) of its rule. `due`: a little later, where it has a jitter."""

    entry: Schedule
    at: datetime

    @property
    def due(self) -> datetime:
        return self.at + timedelta(seconds=self.entry.shift_s)

    @property
    def label(self) -> str:
        return label(self.at, self.entry.zone)


class Missed(Struct, frozen=True):
    """Fires of one entry that nobody looked for in time, oldest first."""

    entry: Schedule
    fires: tuple[Fire, ...]
    more: bool = False


class Agenda(Struct, frozen=True):
    """What a look brings: at most one of each for an entry. Nothing else comes due before
    `coming`; None: nothing ever does."""

    due: tuple[Fire, ...] = ()
    missed: tuple[Missed, ...] = ()
    coming: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.due or self.missed)


class _Look(Struct, frozen=True):
    """The same for one entry."""

    due: Fire | None
    missed: Missed
    coming: Fire | None


def agenda(standing: Sequence[Standing], looked: datetime, now: datetime) -> Agenda:
    """Of what came due after `looked`, up to now."""
    looks = [_look(one, looked, now) for one in standing]
    return Agenda(
        due=tuple(sorted((look.due for look in looks if look.due), key=lambda fire: fire.due)),
        missed=tuple(look.missed for look in looks if look.missed.fires),
        coming=min((look.coming.due for look in looks if look.coming), default=None),
    )


def window(fire: Fire) -> timedelta:
    """How late it may be: half of the time until the next one, within bounds."""
    following = _next(fire.entry, fire.at)
    half = LONGEST_WINDOW if following is None else (following.at - fire.at) / 2
    return min(max(half, SHORTEST_WINDOW), LONGEST_WINDOW)


def next_fire(entry: Schedule, now: datetime) -> Fire | None:
    """The first one that is still to come; None for a rule that has come to its end."""
    return _next(entry, now - timedelta(seconds=entry.shift_s))


def _look(one: Standing, looked: datetime, now: datetime) -> _Look:
    shift = timedelta(seconds=one.entry.shift_s)
    after, until = max(looked - shift, one.since - _JUST_BEFORE), now - shift
    coming = _next(one.entry, after)
    if coming is None or coming.at > until:
        return _Look(None, Missed(one.entry, ()), coming)
    lately = max(after, until - LONGEST_WINDOW - _JUST_BEFORE)
    recent = list(_between(one.entry, lately, until))
    older = list(islice(_between(one.entry, after, lately), MOST_MISSED + 1))
    newest = recent[-1] if recent and now - recent[-1].due <= window(recent[-1]) else None
    fires = (*older[:MOST_MISSED], *(recent[:-1] if newest else recent))
    missed = Missed(one.entry, fires, len(older) > MOST_MISSED)
    return _Look(newest, missed, _next(one.entry, until))


def _next(entry: Schedule, after: datetime) -> Fire | None:
    at = next(instants(entry.cron, entry.zone, after), None)
    return None if at is None else Fire(entry, at)


def _between(entry: Schedule, after: datetime, until: datetime) -> Iterator[Fire]:
    found = takewhile(lambda at: at <= until, instants(entry.cron, entry.zone, after))
    return (Fire(entry, at) for at in found) if after < until else iter(())
