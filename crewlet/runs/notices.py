"""From a row to the events that are told of it, and from a control message to what happens to it.

Every id follows from what caused the event: whoever says it a second time says the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from crewlet.events import Event, Trace, decode
from crewlet.events import catalogue as types
from crewlet.events.runs import RunAnswered, RunAsked, RunEnded, RunSaid, RunStarted
from crewlet.inbound.ids import derived_id
from crewlet.inbound.letters import CONVERSATION_IDENTITY, PARTITION_KEY
from crewlet.runs.row import Asked, Ended, Notice, Reply, Run, State

ENDS: Final = (types.RUN_COMPLETED, types.RUN_FAILED)
"""What comes to a seat's inbox of its runs."""


Said: TypeAlias = Asked | Ended
"""What a control message does to its run."""


def said(event_type: str, run_id: str, text: str, at: datetime) -> Event:
    """A control message."""
    body = RunSaid(run_id=run_id, text=text)
    return Event.new(event_type, at=at, trace=Trace.current(), body=body)


def input_of(event: Event) -> Said | None:
    """What a control message does to its run; None for one of another kind. Raises CorruptEvent
    where it does not fit."""
    if event.type not in (*ENDS, types.RUN_CLARIFICATION_REQUESTED):
        return None
    notice = Notice(event.id, event.timestamp, event.read(RunSaid).text)
    if event.type == types.RUN_CLARIFICATION_REQUESTED:
        return Asked(notice)
    return Ended(notice, failed=event.type == types.RUN_FAILED)


def started(run: Run) -> Event:
    origin = run.origin
    body = RunStarted(**_of(run), triggers=origin.triggers)
    return _event(types.RUN_STARTED, run, body, run.opened_at, origin.turn_id, "started")


def asked(run: Run, question: Notice) -> Event:
    body = RunAsked(**_of(run), question=question.text)
    return _event(types.RUN_CLARIFICATION_REQUESTED, run, body, question.at, question.id, "asked")


def answered(run: Run, reply: Reply, at: datetime) -> Event:
    body = RunAnswered(**_of(run), reply_id=reply.event_id)
    return _event(types.RUN_ANSWERED, run, body, at, reply.event_id, "answered")


def ended(run: Run, end: Notice) -> Event:
    """On record, and as the seat's inbox gets it."""
    event_type = types.RUN_FAILED if run.state is State.FAILED else types.RUN_COMPLETED
    item = run.origin.work_item or UNSET
    body = RunEnded(**_of(run), text=end.text, triggers=run.origin.triggers, work_item=item)
    return _event(event_type, run, body, end.at, end.id, "ended")


def handed_back(run: Run, reply: Reply) -> Event:
    """The reply as the ordinary message that it is. Its own id stays with the delivery that it
    came by, which is worked; this one is another."""
    event = decode(reply.event.encode())
    id = derived_id(reply.event_id, run.handle, run.run_id, "handed back")
    return msgspec.structs.replace(event, id=id)


def resumed_turn(event: Event) -> str:
    """The turn that this event goes on with; empty for all but the end of a run."""
    return event.value("turn_id", str, "") if event.type in ENDS else ""


def triggers_of(events: Sequence[Event]) -> tuple[str, ...]:
    """What a turn for these is for: also what it has been for before it was suspended."""
    before = [
        id
        for event in events
        if event.type in ENDS
        for id in event.value("triggers", tuple[str, ...], ())
    ]
    return tuple(dict.fromkeys([*before, *(event.id for event in events)]))


def _of(run: Run) -> dict[str, str]:
    origin = run.origin
    return {
        "agent_id": origin.agent_id,
        "agent_role": run.handle,
        "run_id": run.run_id,
        "turn_id": origin.turn_id,
        "conversation_key": origin.conversation_identity,
    }


def _event(event_type: str, run: Run, body: Struct, at: datetime, *cause: str) -> Event:
    """In the conversation of the turn that suspended, and in its trace."""
    keys = {
        PARTITION_KEY: run.origin.partition_key,
        CONVERSATION_IDENTITY: run.origin.conversation_identity,
    }
    return Event.new(
        event_type,
        id=derived_id(run.handle, run.run_id, *cause),
        at=at,
        trace=Trace.joined(run.origin.traceparent),
        payload={
            "recipient_handle": run.handle,
            **{key: value for key, value in keys.items() if value},
        },
        delegation_depth=run.origin.depth,
        delegation_chain=run.origin.chain,
        body=body,
    )
