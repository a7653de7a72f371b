"""What a company is: units, seats, routes, and how somebody in it is found.

Nothing here reads a file or asks which seats this node runs: resolution is a function of the
company alone, so that every node gives the same answer (docs/contract.md 124, 125).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from actors.delivery import MAX_BATCH, MAX_LINGER_S, BatchOptions
from actors.machines.placement import Demand
from crewlet.company.endpoint import Endpoint
from crewlet.company.integrations import Integrations
from crewlet.schedule.entry import Schedule
from crewlet.schedule.rule import UTC_ZONE
from crewlet.sources.generic_rule import ANYBODY

Kind: TypeAlias = Literal["agent", "human"]

AGENT_NAMESPACE: Final = uuid.UUID("c1ea9c6e-3f5d-4c9c-9e9f-1d2c3b4a5e6f")

TURN_TIMEOUT_S: Final = 1800.0
"""How long one turn may take unless its handler says otherwise: the ack window of a mailbox."""


class Contact(Struct, frozen=True, kw_only=True):
    """The accounts that a seat has elsewhere; empty where it has none."""

    slack_user_id: str = ""
    mattermost_user_id: str = ""
    atlassian_account_id: str = ""
    github_login: str = ""
    gitlab_username: str = ""
    plane_user_id: str = ""


class HandlerSpec(Struct, frozen=True, kw_only=True):
    """What does a seat's work: exactly one of `python` (`module:function`), `command` (an
    argument list, never a shell line) and `openai`. A turn longer than `timeout_s` seconds
    failed."""

    python: str = ""
    command: tuple[str, ...] = ()
    openai: Endpoint | None = None
    timeout_s: float = TURN_TIMEOUT_S


class Placement(Struct, frozen=True, kw_only=True):
    """Which nodes may work a seat: the one called `node`, where that is not empty, if it bears
    every label. Without either any node may."""

    node: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def demand(self) -> Demand:
        return Demand(self.node, tuple(sorted(self.labels.items())))


class Seat(Struct, frozen=True, kw_only=True):
    """One role of the company. `agent_id` is empty for a human, and so is every mailbox.

    `unit` is the innermost unit's name, empty at the root; `unit_path` names all of them from
    the outside in. `manages` holds handles. `placement` is the role's own or that of the
    innermost unit around it that has one, as a whole. `line` is where the role stands in its file.
    """

    handle: str
    name: str
    kind: Kind = "agent"
    unit: str = ""
    unit_path: tuple[str, ...] = ()
    goal: str = ""
    backstory: str = ""
    responsibilities: tuple[str, ...] = ()
    manages: tuple[str, ...] = ()
    email: str = ""
    contact: Contact = field(default_factory=Contact)
    agent_id: str = ""
    handler: HandlerSpec | None = None
    placement: Placement | None = None
    line: int = 0

    @property
    def demand(self) -> Demand:
        """Where it may be worked: anywhere, unless the file says otherwise."""
        return Demand() if self.placement is None else self.placement.demand

    @property
    def is_agent(self) -> bool:
        return self.kind == "agent"

    def account(self, kind: str) -> str:
        """What the seat is called at `kind` (a field of Contact, or `email`), else empty."""
        if kind == "email":
            return self.email
        if kind not in Contact.__struct_fields__:
            raise ValueError(f"there is no kind of contact called {kind!r}")
        return str(getattr(self.contact, kind))


class Unit(Struct, frozen=True, kw_only=True):
    """A department, a team: its own seats by handle, and the units inside it."""

    name: str
    type: str = ""
    purpose: str = ""
    lead: str = ""
    goals: tuple[str, ...] = ()
    seats: tuple[str, ...] = ()
    units: tuple[Unit, ...] = ()
    line: int = 0

    def walk(self) -> Iterator[Unit]:
        """This unit and all inside it, from the outside in."""
        yield self
        for inner in self.units:
            yield from inner.walk()


class Route(Struct, frozen=True, kw_only=True):
    """Who else is woken by an event that addresses nobody.

    `event` is `source/type`, `*` allowed in the type (`github/issues.*`). Every filter in
    `where` has to match; a filter's value may hold `*` and `?`. `to` is a handle.
    """

    event: str
    to: str
    where: Mapping[str, str] = field(default_factory=dict)
    line: int = 0

    def covers(self, source: str, event_type: str) -> bool:
        """Whether the event is one that this route names; the filters are another question."""
        return fnmatchcase(f"{source}/{event_type}", self.event)


class Company(Struct, frozen=True, kw_only=True):
    """A whole company, as its file declares it: complete, or not there at all.

    `seats` stand in the order of the file, and so do `schedules`, those of roles and of units
    alike. `timezone` is the zone of schedules that named none. `source_text` is the file as it
    was written, with its `${NAME}` references and without what they stood for: the text to keep
    as a revision.
    """

    name: str
    mission: str = ""
    vision: str = ""
    policies: tuple[str, ...] = ()
    seats: tuple[Seat, ...] = ()
    units: tuple[Unit, ...] = ()
    routes: tuple[Route, ...] = ()
    integrations: Integrations = field(default_factory=Integrations)
    handler: HandlerSpec | None = None
    schedules: tuple[Schedule, ...] = ()
    timezone: str = UTC_ZONE
    notification_coalesce_window_seconds: float = 0.0
    notification_coalesce_max_batch: int = 20
    notification_rate_limit: int = 0
    source_text: str = ""

    def __repr__(self) -> str:
        return f"Company(name={self.name!r}, seats={[seat.handle for seat in self.seats]})"

    def seat(self, handle: str) -> Seat | None:
        """The seat of exactly this handle."""
        return next((seat for seat in self.seats if seat.handle == handle), None)

    def agents(self) -> tuple[Seat, ...]:
        """The seats that do work here: everybody but the humans."""
        return tuple(seat for seat in self.seats if seat.is_agent)

    def resolve(self, who: str) -> Seat | None:
        """The seat that a handle, an agent id or a role name means, in this order.

        A role name that two seats share means neither of them.
        """
        if not who:
            return None
        by_id = (seat for seat in self.seats if who in (seat.handle, seat.agent_id))
        named = [seat for seat in self.seats if seat.name == who]
        return next(by_id, named[0] if len(named) == 1 else None)

    def by_contact(self, kind: str, value: str) -> Seat | None:
        """The seat behind an outside account; upper and lower case are the same there.

        `kind` is a field of Contact, `email`, or `anybody`: a handle, a role's name or an
        e-mail address. ValueError for any other.
        """
        if kind == ANYBODY:
            return self.resolve(value.strip()) or self.by_contact("email", value)
        wanted = fold(value)
        owners = (seat for seat in self.seats if fold(seat.account(kind)) == wanted)
        return next(owners, None) if wanted else None

    def handler_of(self, seat: Seat) -> HandlerSpec | None:
        """The seat's own handler, else the company's; never one for a human."""
        return (seat.handler or self.handler) if seat.is_agent else None

    def secrets(self) -> list[str]:
        """All secrets of the file, to be kept from those who do the work."""
        specs = [self.handler, *(seat.handler for seat in self.seats)]
        keys = (spec.openai.key for spec in specs if spec is not None and spec.openai is not None)
        found = [*self.integrations.secrets(), *(key.reveal() for key in keys if key is not None)]
        return list(dict.fromkeys(found))

    def all_units(self) -> Iterator[Unit]:
        """Every unit, nested ones after the one that holds them."""
        for unit in self.units:
            yield from unit.walk()

    @property
    def batch_options(self) -> BatchOptions:
        """How every seat's mail is collected, clamped once more on the way out."""
        return BatchOptions(
            max_batch=min(MAX_BATCH, max(1, self.notification_coalesce_max_batch)),
            linger_s=min(MAX_LINGER_S, max(0.0, self.notification_coalesce_window_seconds)),
        )


def agent_id(company: str, handle: str) -> str:
    """The same on every node, for ever: derived from the two names and nothing else."""
    return str(uuid.uuid5(AGENT_NAMESPACE, f"{company}:{handle}"))


def fold(account: str) -> str:
    """An outside account name as it is compared: the vendors do not tell case apart."""
    return account.strip().casefold()
