"""A seat or a duty on this node, and the rows that are written when it changes hands."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from actors.machines import handoff
from actors.system import Address
from actors.tenure import MAIL_OUT, WATCHED_S, Lease, Tenure, resource_of

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

    def __init__(self, handle: str, number: int, row: Lease | None) -> None:
        self.handle = handle
        self.number = number
        self.claimed_on = row.revision if row else 0
        self.outrun = -1
        """A revision that is known not to be the row's last any more; -1: none is."""
        self.machine = handoff.Handoff()
        self.address: Address | None = None
        self.tenure: Tenure | None = None
        self.doubted = False
        """In an outage something may have been lost on its way to us, or on its way back."""
        self.watch_s = watch_s(row)
        self.watched_until = float("-inf")
        """Until then a fetch of a dead holder may still take mail."""

    @property
    def stuck(self) -> bool:
        """It could not be let go of."""
        return self.machine.state is handoff.State.UNDEAD

    def tag(self, kind: str) -> Tag:
        return Tag(kind, self.handle, self.number)

    def mail_out_s(self, write: handoff.WriteRelease, now: float) -> float:
        """How long the next holder has to look for mail in nobody's hands. What is left is handed
        on, so that of a seat that changes hands often somebody comes to the end of it."""
        if self.doubted:
            return WATCHED_S
        return self.watch_s if write.mail_out else max(0.0, self.watched_until - now)


def watch_s(row: Lease | None) -> float:
    """For how long the mail of a seat that is taken under this row is looked for, if it is."""
    if row is None or not row.released:
        return WATCHED_S
    try:
        stated = float(row.about.get(MAIL_OUT, WATCHED_S))
    except ValueError:
        return WATCHED_S
    return stated if 0.0 <= stated <= WATCHED_S else WATCHED_S


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


def release(write: handoff.WriteRelease, *, mail_out_s: float) -> Lease:
    """It is given up in place: who had it last, and under which epoch, stays written."""
    row = write.row
    about = {ORDERED: "1"} if write.ordered else {}
    if mail_out_s > 0:
        about[MAIL_OUT] = f"{mail_out_s:.3f}"
    if write.unprepared:
        about[UNPREPARED] = row.node
    return replace(row, released=True, preferred=write.to, about=about)
