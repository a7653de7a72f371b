"""Who is woken by a notification: a function of it, the company and the conversation's followers.

Addressed seats, seats already in the conversation, and the company's routes; nobody else, and
never the sender. Nothing here asks which seats this node runs: every node answers the same.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from crewlet.inbound.phrases import NO_SEAT, RECIPIENT_IS_HUMAN
from crewlet.sources.notification import Notification
from crewlet.sources.registry import contact_kind

Why: TypeAlias = Literal["addressed", "follower", "route"]

UNKNOWN_SENDER: Final = "unknown"
"""Never one of our seats, even where somebody is registered under that very name."""

_LISTED: Final = 10


class SeatLike(Protocol):
    """What routing needs to know of a seat."""

    @property
    def handle(self) -> str: ...
    @property
    def kind(self) -> str: ...


class RouteLike(Protocol):
    """What routing needs to know of a route."""

    @property
    def event(self) -> str: ...
    @property
    def to(self) -> str: ...
    @property
    def where(self) -> Mapping[str, Any]: ...
    def covers(self, source: str, event_type: str) -> bool: ...


class CompanyLike(Protocol):
    """What routing needs of a company; crewlet.company.Company is one."""

    @property
    def routes(self) -> Sequence[RouteLike]: ...
    def seat(self, handle: str) -> SeatLike | None: ...
    def by_contact(self, kind: str, value: str) -> SeatLike | None: ...


class Recipient(Struct, frozen=True):
    """A seat to wake, and the strongest reason for it."""

    handle: str
    why: Why


class Dropped(Struct, frozen=True):
    """Somebody who was meant and is not woken: the fixed phrase and what exactly.

    `who` is a handle, or the vendor's names where no seat is behind them.
    """

    who: str
    reason: str
    detail: str = ""


class Routing(Struct, frozen=True):
    """The answer for one notification: each handle at most once, in a fixed order.

    Addressed seats come as the payload names them, then followers as given, then routes in the
    file's order.
    """

    wake: tuple[Recipient, ...] = ()
    skips: tuple[Dropped, ...] = ()

    @property
    def nobody(self) -> bool:
        """It concerns nobody: to be counted and logged at debug, not recorded as a skip."""
        return not self.wake and not self.skips

    @property
    def joins(self) -> tuple[str, ...]:
        """Handles that are in the conversation from now on, because they were addressed."""
        return tuple(to.handle for to in self.wake if to.why == "addressed")


class _Meant(Struct, frozen=True):
    """Somebody whom the notification should reach: `seat` is None where there is no such."""

    name: str
    why: Why
    seat: SeatLike | None


def recipients(
    notification: Notification, company: CompanyLike, followers: Sequence[str] = ()
) -> Routing:
    """Who is woken, and who was meant and is not.

    Outsiders are ordinary traffic: addressed names without a seat are recorded only where
    nobody is woken, and then once for the whole delivery.
    """
    sender = _seat_of(notification, company, notification.sender)
    wake: dict[str, Recipient] = {}
    skips: dict[str, Dropped] = {}
    strangers: list[str] = []
    for meant in _meant(notification, company, followers):
        if meant.seat is None:
            if meant.why == "addressed":
                strangers.append(meant.name)
            else:
                skips.setdefault(meant.name, Dropped(meant.name, NO_SEAT, _LOST[meant.why]))
        elif sender is not None and meant.seat.handle == sender.handle:
            continue
        elif meant.seat.kind == "human":
            handle = meant.seat.handle
            skips.setdefault(handle, Dropped(handle, RECIPIENT_IS_HUMAN, f"as {meant.why}"))
        else:
            wake.setdefault(meant.seat.handle, Recipient(meant.seat.handle, meant.why))
    if strangers and not wake:
        skips.setdefault("", _no_seat(notification.source, strangers))
    return Routing(tuple(wake.values()), tuple(skips.values()))


_LOST: Final[Mapping[Why, str]] = {
    "follower": "it followed the conversation and is no seat of the company any more",
    "route": "a route names it and it is no seat of the company",
}


def _meant(
    notification: Notification, company: CompanyLike, followers: Sequence[str]
) -> Iterator[_Meant]:
    """Everybody, the strongest reason first; a verdict of nothing leaves the routes."""
    if notification.verdict == "wake":
        for name in notification.addressed:
            yield _Meant(name, "addressed", _seat_of(notification, company, name))
    if notification.verdict in ("wake", "follow"):
        for handle in followers:
            yield _Meant(handle, "follower", company.seat(handle))
    for route in company.routes:
        if matches(route, notification):
            yield _Meant(route.to, "route", company.seat(route.to))


def _seat_of(notification: Notification, company: CompanyLike, name: str) -> SeatLike | None:
    """The seat behind a vendor's name. Teams and the unknown are nobody's account."""
    kind = contact_kind(notification.source)
    if not kind or not name or name == UNKNOWN_SENDER or name.startswith("team:"):
        return None
    return company.by_contact(kind, name)


def _no_seat(source: str, strangers: Sequence[str]) -> Dropped:
    listed = ", ".join(strangers[:_LISTED])
    more = len(strangers) - _LISTED
    who = f"{listed} and {more} more" if more > 0 else listed
    kind = contact_kind(source) or "contact"
    return Dropped(who, NO_SEAT, f"no seat has the {kind} of anybody addressed")


def matches(route: RouteLike, notification: Notification) -> bool:
    """Whether a route asks for this notification: its event, and every one of its filters."""
    return route.covers(notification.source, notification.event_type) and all(
        _passes(_stated(notification, key), wanted) for key, wanted in route.where.items()
    )


def _stated(notification: Notification, key: str) -> list[str]:
    """What a notification says under a filter's key, folded; a list has several answers."""
    special = _SPECIAL.get(key)
    value = special(notification) if special else notification.metadata.get(key)
    values = value if isinstance(value, (list, tuple)) else [value]
    return [_folded(entry) for entry in values if entry is not None]


def _label(notification: Notification) -> Any:
    """The label just put on or taken off, else all that it has."""
    return notification.metadata.get("label") or notification.metadata.get("labels")


_SPECIAL: Final[Mapping[str, Callable[[Notification], Any]]] = {
    "sender": lambda notification: notification.sender,
    "label": _label,
}


def _passes(stated: Sequence[str], wanted: Any) -> bool:
    """Whether one of the answers fits one of the wanted patterns."""
    patterns = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    return any(_glob(_folded(pattern))(answer) for pattern in patterns for answer in stated)


def _folded(value: Any) -> str:
    """Text to compare: JSON's spelling of true and false, everything else as it prints."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip().casefold()


@lru_cache(maxsize=256)
def _glob(pattern: str) -> Callable[[str], object]:
    """`*` and `?` only: in `renovate[bot]` the brackets are part of a name, no character set."""
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]"))).match
