"""A seat or a duty on this node, and the rows that are written when it changes hands."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from actors.machines import handoff
from actors.system import Address
from actors.tenure import MAIL_OUT, Lease, Tenure, resource_of

ORDERED: Final = "ordered"
"""In a row's `about`: an operator sent the seat to the preferred node."""

UNPREPARED: Final = "unprepared"
"""In a row's `about`: the last node that took the seat and could not establish it."""


class Tag(Struct, frozen=True):
    """Of an effect: what it is for. `number` is that of the hand-off that began it."""

    kind: str
    handle: str
    number: int


class Bound(Struct, frozen=True):
    """A seat's bounded wait for its running turn, or the grace after it, is over."""

    handle: str
    given_up: bool


class Rest(Struct, frozen=True):
    """Time to let go of whatever is left, in whatever order."""


class Holding:
    """What this node is about to have, has, or is letting go of. `number` tells the answers of an
    earlier hand-off from those of this one."""

    def __init__(self, handle: str, number: int) -> None:
        self.handle = handle
        self.number = number
        self.machine = handoff.Handoff()
        self.address: Address | None = None
        self.tenure: Tenure | None = None
        self.doubted = False
        """In an outage something may have been lost on its way to us, or on its way back."""
        self.watched_until = float("-inf")
        """Until then a fetch of a dead holder may still take mail."""

    @property
    def stuck(self) -> bool:
        """It could not be let go of."""
        return self.machine.state is handoff.State.UNDEAD

    def tag(self, kind: str) -> Tag:
        return Tag(kind, self.handle, self.number)


def claim(handle: str, row: Lease | None, *, owner: str, node: str, session: int) -> Lease:
    """Whoever takes a seat raises its epoch, also from itself. That an operator sent it here stays
    written for as long as it is here, and who could not work it until that one does."""
    about = {} if row is None else row.about
    ours = row is not None and row.preferred == node
    kept = {ORDERED: "1"} if ours and ORDERED in about else {}
    if about.get(UNPREPARED, node) != node:
        kept[UNPREPARED] = about[UNPREPARED]
    return Lease(
        resource=resource_of(handle),
        owner=owner,
        node=node,
        epoch=(row.epoch if row else 0) + 1,
        session=session,
        preferred=node if ours else "",
        about=kept,
        revision=row.revision if row else 0,
    )


def release(write: handoff.WriteRelease, *, mail_out: bool) -> Lease:
    """It is given up in place: who had it last, and under which epoch, stays written."""
    row = write.row
    about = {ORDERED: "1"} if write.ordered else {}
    if write.mail_out or mail_out:
        about[MAIL_OUT] = "1"
    if write.unprepared:
        about[UNPREPARED] = row.node
    return replace(row, released=True, preferred=write.to, about=about)
