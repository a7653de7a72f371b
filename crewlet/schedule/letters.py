"""What is published for a fire: the same, ids and trace and moment, however often it is made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.schedules import (
    FIRED,
    NO_MAILBOX,
    SKIPPED_CATCHUP,
    ScheduledTask,
    ScheduledTaskFired,
)
from crewlet.inbound.ids import derived_id
from crewlet.schedule.claims import Claim
from crewlet.schedule.entry import Schedule
from crewlet.schedule.fires import Fire

SENDER: Final = "scheduler"


def task(fire: Fire, claim: Claim) -> Event:
    """The work itself, for the inbox of the claim's seat."""
    entry = fire.entry
    body = ScheduledTask(
        handle=claim.target,
        text=entry.text,
        sender=SENDER,
        subject=entry.name,
        schedule=entry.name,
        scope=entry.scope,
        label=fire.label,
        timeout_s=entry.timeout_s,
    )
    return Event.new(
        types.TASK_ASSIGNED,
        id=task_id(claim),
        at=claim.at,
        trace=_trace(claim.key, "task"),
        source=SENDER,
        payload={"recipient_handle": claim.target},
        body=body,
    )


def fired(fire: Fire, claim: Claim, *, kept: bool) -> Event:
    """The record of it, in the task's trace; `kept` is whether there was an inbox."""
    entry = fire.entry
    summary = f"{entry.name} ({fire.label}) fired for {claim.target}"
    body = ScheduledTaskFired(
        schedule=entry.name,
        scope_type=entry.scope_type,
        scope=entry.scope,
        label=fire.label,
        outcome=FIRED if kept else NO_MAILBOX,
        summary=summary if kept else f"{summary}, who has no mailbox",
        agent_role=claim.target,
        task_id=task_id(claim) if kept else "",
        late_s=max(0.0, (claim.at - fire.due).total_seconds()),
    )
    return Event.new(
        types.SCHEDULED_TASK_FIRED,
        id=derived_id("fired", claim.key),
        at=claim.at,
        trace=_trace(claim.key),
        source=SENDER,
        body=body,
    )


def skipped(entry: Schedule, fires: Sequence[Fire], at: datetime, *, more: bool) -> Event:
    """The record of fires that nobody looked for in time."""
    first, last = fires[0].label, fires[-1].label
    count = f"{len(fires)}{' and more' if more else ''} fires" if len(fires) > 1 else "the fire"
    body = ScheduledTaskFired(
        schedule=entry.name,
        scope_type=entry.scope_type,
        scope=entry.scope,
        label=last,
        outcome=SKIPPED_CATCHUP,
        summary=f"{entry.name}: {count} up to {last} came due while nobody looked, too long ago",
        agent_role=entry.targets[0] if len(entry.targets) == 1 else "",
        missed=len(fires),
        first=first,
        more=more,
    )
    key = f"{entry.id}.{first}.{last}"
    return Event.new(
        types.SCHEDULED_TASK_FIRED,
        id=derived_id("skipped", key),
        at=at,
        trace=_trace(key),
        source=SENDER,
        body=body,
    )


def task_id(claim: Claim) -> str:
    return derived_id("task", claim.key)


def _trace(key: str, child: str = "") -> Trace:
    """Of a fire, and of what is below it: made of its key, so that a second doer has the same."""
    trace_id, span_id = _digits(key, 32), _digits(f"{key}/", 16)
    return Trace(trace_id, _digits(f"{key}/{child}", 16), span_id if child else "")


def _digits(text: str, count: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:count]
