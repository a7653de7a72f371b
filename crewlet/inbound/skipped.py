"""A trigger that no turn will run for, said once for each turn that is the reason."""

from __future__ import annotations

from datetime import datetime

from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.events.types import TurnTriggerSkipped
from crewlet.inbound.ids import derived_id


def trigger_skipped(
    trigger: Event,
    handle: str,
    *,
    reason: str,
    turn_id: str,
    completed_at: datetime,
    at: datetime,
) -> Event:
    """Its record: in the trigger's own trace, under an id that a second look repeats."""
    body = TurnTriggerSkipped(
        agent_role=handle,
        trigger_id=trigger.id,
        reason=reason,
        worked_by=turn_id,
        completed_at=completed_at,
    )
    return Event.new(
        types.TURN_TRIGGER_SKIPPED,
        id=derived_id(trigger.id, handle, "skipped", turn_id),
        at=at,
        trace=trigger.trace.child(),
        body=body,
    )
