"""Bodies of what happens to triggers: they are merged, or the turn they had is given up."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Guard: TypeAlias = Literal["abandoned", "panic"]


class NotificationsCoalesced(Struct, frozen=True, kw_only=True):
    """The events of one partition became one trigger. The only type that names a partition, and
    under its own name: elsewhere `conversation_key` is the conversation's identity."""

    agent_id: str
    agent_role: str
    partition_key: str
    triggers: tuple[str, ...]
    count: int


class TurnGuardBreach(Struct, frozen=True, kw_only=True):
    """A turn that was given up for good. `guard` says by whom: its handler (abandoned), or the
    frame around it broke (panic)."""

    turn_id: str
    agent_id: str
    agent_role: str
    triggers: tuple[str, ...]
    guard: Guard
    reason: str
    conversation_key: str = ""
