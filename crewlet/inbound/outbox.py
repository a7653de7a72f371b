"""What turns owe to somebody else than their own seat: written down before the turn completes,
sent once it has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from actors.delivery import Letter
from crewlet.events import Trace


class Finished(Struct, frozen=True, kw_only=True):
    """A turn that is about to complete. `epoch` is that of its seat's tenure, 0 without one."""

    handle: str
    turn_id: str
    letters: tuple[Letter, ...]
    answer: str
    trace: Trace
    at: datetime
    epoch: int = 0


class Outbox(Protocol):
    """Both verbs may be called again, for the same turn and for a later run of it. Each answers
    why somebody does not get what they were to get, and nothing where all is well."""

    async def keep(self, finished: Finished) -> str:
        """Write down what is owed. StoreUnavailable: unknown, and the turn may not complete."""

    async def send(self, handle: str, letters: Sequence[Letter]) -> str:
        """A turn of the seat that worked these has completed: what is owed for it goes out. It
        logs what it cannot do, and does it when it is called again."""
