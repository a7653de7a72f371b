"""How a node stands to the active revision: it works by it, is behind it, or is stuck."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from crewlet.revisions.revision import Revision

TRIES: Final = 3
"""A revision that a node cannot work by is tried so often: a program may be on its way here."""

State: TypeAlias = Literal["applied", "behind", "stuck"]


class Standing(Struct, frozen=True, kw_only=True):
    """`number` and `digest` are of the revision that the node works by; number 0 is that of a
    company which is no revision. `wanted` is one that it could not take, `tries` times, for
    `reason`; 0 where there is none."""

    number: int = 0
    digest: str = ""
    wanted: int = 0
    tries: int = 0
    reason: str = ""

    @property
    def state(self) -> State:
        if not self.wanted:
            return "applied"
        return "stuck" if self.tries >= TRIES else "behind"

    def is_at(self, active: Revision) -> bool:
        """The node works by exactly this one."""
        return (self.number, self.digest) == (active.number, active.digest)

    def tries_now(self, active: Revision) -> bool:
        """It is to be taken: it is another one, and not yet known to be beyond this node. A number
        that is lower is another one too: the store knows, and may have been set up anew."""
        if self.is_at(active):
            return False
        return self.wanted != active.number or self.tries < TRIES

    def taken(self, active: Revision) -> Standing:
        return Standing(number=active.number, digest=active.digest)

    def refused(self, active: Revision, reason: str) -> Standing:
        """One more try failed; it goes on with what it has."""
        tries = self.tries + 1 if self.wanted == active.number else 1
        return replace(self, wanted=active.number, tries=tries, reason=reason)

    def afresh(self) -> Standing:
        """Somebody asks for it again: what failed is tried as if for the first time."""
        return replace(self, tries=0)
