"""The bodies of what is said of runs: by whoever runs the work, and on record."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from crewlet.events.work_items import WorkItem


class RunSaid(Struct, frozen=True, kw_only=True):
    """On the seat's control mailbox: what became of a run. `text` is its result, why it failed,
    or what it asks, by the event's type."""

    run_id: str
    text: str = ""


class RunStarted(Struct, frozen=True, kw_only=True):
    """A turn was suspended: its work goes on as this run, and holds the seat."""

    agent_id: str
    agent_role: str
    run_id: str
    turn_id: str
    conversation_key: str = ""
    triggers: tuple[str, ...] = ()


class RunAsked(Struct, frozen=True, kw_only=True):
    """The run is parked on a question, and holds nothing."""

    agent_id: str
    agent_role: str
    run_id: str
    turn_id: str
    question: str
    conversation_key: str = ""


class RunAnswered(Struct, frozen=True, kw_only=True):
    """The message `reply_id` is the answer of a parked run; the seat is held again."""

    agent_id: str
    agent_role: str
    run_id: str
    turn_id: str
    reply_id: str
    conversation_key: str = ""


class RunEnded(Struct, frozen=True, kw_only=True):
    """The run is over. `text` is its result, or why it failed; `turn_id` is the turn that was
    suspended, under which the seat goes on, and `triggers` what that turn has been for so far.
    `work_item` is what it is charged to."""

    agent_id: str
    agent_role: str
    run_id: str
    turn_id: str
    text: str
    conversation_key: str = ""
    triggers: tuple[str, ...] = ()
    work_item: WorkItem | UnsetType = UNSET
