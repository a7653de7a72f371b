"""What of Thespian this base refuses, and why."""

from __future__ import annotations

from typing import Final, NoReturn

from thespian.actors import ActorSystemException

REASONS: Final = {
    "sourced loading": "it runs code that arrives in a message",
    "conventions": "systems find one another through the fleet's leases",
    "remote systems": "an actor's address does not leave its process",
}


class Refused(ActorSystemException):
    """A verb of Thespian that this base does not have on purpose. Nothing was changed."""


def refuse(what: str) -> NoReturn:
    """Raise `Refused` with its reason."""
    raise Refused(f"{what}: not on the asyncio base ({REASONS[what]})")
