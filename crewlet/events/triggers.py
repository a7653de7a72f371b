"""Bodies of what happens to triggers: they are merged, or the turn they had is given up."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Guard: TypeAlias = Literal["abandoned", "panic", "scheduled_timeout"]


class NotificationsCoalesced(Struct, frozen=True, kw_only=True):
    """The events of one partition became one trigger. The only type that names a partition, and
    under its own name: elsewhere `conversation_key` is the conversation's identity."""

    agent_id: str
    agent_role: str
    partition_key: str
    triggers: tuple[str, ...]
    count: int


class TurnGuardBreach(Struct, frozen=True, kw_only=True):
    """A turn that failed by itself, and not by its handler's word: it says so under its id.

    `abandoned`: its handler gave it up for good; `panic`: the frame around it broke, and it is
    given up too. `scheduled_timeout`: a schedule's turn was not over in time; its mail is tried
    again like any other.
    """

    turn_id: str
    agent_id: str
    agent_role: str
    triggers: tuple[str, ...]
    guard: Guard
    reason: str
    conversation_key: str = ""
