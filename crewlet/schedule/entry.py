"""One schedule of a role or a unit, as the company file has it."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from crewlet.schedule.rule import UTC_ZONE, normal

Scope: TypeAlias = Literal["role", "unit"]
Target: TypeAlias = Literal["each", "lead"]

TIMEOUT_S: Final = 180.0
"""How long a turn for a schedule may take, unless the schedule says otherwise."""

MAX_JITTER_S: Final = 3600


class Schedule(Struct, frozen=True, kw_only=True, dict=True):
    """What is given to whom, and when.

    `scope` is the handle of the role, or the names of the units from the outside in with `/`
    between them. `targets` are the handles that `target` means in this company: agents all of
    them. `jitter_s` spreads schedules of one moment: see `shift_s`. `line` is its place in the
    file.
    """

    scope_type: Scope
    scope: str
    name: str
    cron: str
    text: str
    zone: str = UTC_ZONE
    target: Target = "each"
    targets: tuple[str, ...] = ()
    timeout_s: float = TIMEOUT_S
    jitter_s: int = 0
    line: int = 0

    @cached_property
    def id(self) -> str:
        """What makes it this schedule and no other: all but its name, which is for people, and
        what does not touch when it comes due (docs/adr/0015). 24 hex digits."""
        what = (
            self.scope_type,
            self.scope,
            self.target,
            normal(self.cron),
            self.zone,
            str(self.jitter_s),
            self.text,
        )
        return hashlib.sha256("\0".join(what).encode()).hexdigest()[:24]

    @cached_property
    def shift_s(self) -> int:
        """How many seconds after its time it fires, from 0 to `jitter_s`: by its id, and so the
        same each time and on every node."""
        return int(self.id, 16) % (self.jitter_s + 1)
