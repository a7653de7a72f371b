"""The bodies of what passes between two seats: the wakes, and the record of their channel.

`agent_role` is the seat that acts; where it is empty, the system did.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET, Struct, UnsetType

from crewlet.events.work_items import WorkItem


class A2ARequest(Struct, frozen=True, kw_only=True):
    """The wake of the seat that is asked: its turn's final text is the answer. `work_item` is
    what the asking turn is charged to."""

    channel_id: str
    sender: str
    recipient: str
    text: str
    work_item: WorkItem | UnsetType = UNSET


class A2AMessage(Struct, frozen=True, kw_only=True):
    """The wake of the seat that had asked: the answer, or (`failed`, sent by nobody) why none
    comes.

    `question` is what was asked, `asked_in` the conversation of the turn that did: the seat may
    have worked other things since.
    """

    channel_id: str
    recipient: str
    target: str
    text: str
    sender: str = ""
    question: str = ""
    asked_in: str = ""
    failed: bool = False
    work_item: WorkItem | UnsetType = UNSET


class A2AChannelOpened(Struct, frozen=True, kw_only=True):
    """`turn_id` and `work_key` are those of the turn that asks."""

    channel_id: str
    agent_role: str
    requester: str
    target: str
    turn_id: str
    work_key: str
    summary: str


class A2AMessageSent(Struct, frozen=True, kw_only=True):
    """One of the two messages of a channel, with its text."""

    channel_id: str
    agent_role: str
    sender: str
    recipient: str
    text: str
    turn_id: str
    work_key: str
    summary: str


class A2AChannelClosed(Struct, frozen=True, kw_only=True):
    """Once for each channel. An answer closes it in the name of its seat and turn; the system in
    nobody's, with a `reason`. The duration is that between the record's own two instants."""

    channel_id: str
    participants: tuple[str, str]
    messages: int
    opened_at: datetime
    closed_at: datetime
    duration_s: float
    summary: str
    agent_role: str = ""
    closed_by: str = ""
    turn_id: str = ""
    work_key: str = ""
    reason: str = ""
