"""The bodies of what interrupts a seat's work: an outage of its provider, a person."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class LlmUnavailable(Struct, frozen=True, kw_only=True):
    """What a seat's handler needs did not answer: once for each outage. The seat is held until
    it does, and asked for again at `next_at` for the first time."""

    turn_id: str
    agent_id: str
    agent_role: str
    reason: str
    next_at: datetime


class AgentTurnStopped(Struct, frozen=True, kw_only=True):
    """A person ended a running turn; what woke it is recorded as worked."""

    turn_id: str
    agent_id: str
    agent_role: str
    triggers: tuple[str, ...]
    stopped_by: str
