"""The bodies of the engine's own event types: they stand flat beside the envelope."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from crewlet.events.work_items import Basis, WorkItem


class TaskAssigned(Struct, frozen=True, kw_only=True):
    """Work put straight into a seat's inbox."""

    handle: str
    text: str
    sender: str = ""
    subject: str = ""


class ExternalNotification(Struct, frozen=True, kw_only=True):
    """One readable happening outside; `why` says why this seat is woken by it."""

    notification: Mapping[str, Any]
    delivery: str = ""
    recipient_handle: str = ""
    why: str = ""


class NotificationSkipped(Struct, frozen=True, kw_only=True):
    """An addressed delivery that reached nobody: a fixed phrase, and what exactly."""

    reason: str
    detail: str = ""
    source_type: str = ""
    source_event_type: str = ""
    delivery: str = ""
    recipients: tuple[str, ...] = ()


class TurnTriggerSkipped(Struct, frozen=True, kw_only=True):
    """A trigger that no turn will run for, because one has worked it."""

    agent_role: str
    trigger_id: str
    reason: str
    worked_by: str = ""
    completed_at: datetime | None = None


class AgentTurnStarted(Struct, frozen=True, kw_only=True):
    """`triggers` are the ids of the events that the turn is for; `woken_by` is whoever the latest
    is of (a seat's handle, else the sender), `woken_as` its type at its source. `resumed`: the turn
    had suspended under this id, and goes on with the end of its run. `work_item` is what it is
    charged to, absent where nothing names one, and `work_item_basis` the rule that did."""

    turn_id: str
    agent_id: str
    agent_role: str
    triggers: tuple[str, ...]
    conversation_key: str = ""
    attempt: int = 1
    woken_by: str = ""
    woken_as: str = ""
    resumed: bool = False
    work_item: WorkItem | UnsetType = UNSET
    work_item_basis: Basis | UnsetType = UNSET


class AgentTurnCompleted(Struct, frozen=True, kw_only=True):
    """`outcome` is ack, nak, defer, suspend, unavailable (the provider is away), stopped (by a
    person) or abandon (given up for good). A failed turn says why; an acked one has its answer, and
    says why somebody who waited for it did not get it. `suspended` names the run that a parked
    segment goes on as."""

    turn_id: str
    agent_id: str
    agent_role: str
    triggers: tuple[str, ...]
    outcome: str
    conversation_key: str = ""
    answer: str | None = None
    reason: str = ""
    failed: bool = False
    stopped: bool = False
    suspended: str | None = None
    duration_s: float = 0.0
    work_item: WorkItem | UnsetType = UNSET
    summary: str = ""


def end_in_words(handle: str, outcome: str, reason: str) -> str:
    """A turn that failed has completed as well: who reads the record in lines sees which."""
    return f"{handle}: turn {outcome}" + (f", {reason}" if reason else "")


class RawWebhook(Struct, frozen=True, kw_only=True):
    """A delivery as it came: the headers that matter, and the exact bytes.

    `text` holds the body where it is UTF-8, `base64` where it is not.
    """

    vendor: str
    delivery: str
    headers: Mapping[str, str]
    text: str = ""
    base64: str = ""

    @staticmethod
    def of(vendor: str, delivery: str, headers: Mapping[str, str], body: bytes) -> RawWebhook:
        try:
            text, coded = body.decode(), ""
        except UnicodeDecodeError:
            text, coded = "", b64encode(body).decode()
        return RawWebhook(
            vendor=vendor, delivery=delivery, headers=headers, text=text, base64=coded
        )

    @property
    def body(self) -> bytes:
        return b64decode(self.base64) if self.base64 else self.text.encode()


class InboundDelivery(Struct, frozen=True, kw_only=True):
    """One delivery, what it was read as and whom it woke: counted once across the fleet."""

    vendor: str
    delivery: str
    event: str
    size: int
    verdicts: tuple[str, ...] = ()
    woken: tuple[str, ...] = ()


class OperatorActed(Struct, frozen=True, kw_only=True):
    """A person (or their script) made a node do something: who, what, and to what; never the
    arguments. `via` is the node whose socket it came through, where that is another one."""

    actor: str
    uid: int
    verb: str
    target: str
    outcome: str
    summary: str
    via: str = ""


class SeatPaused(Struct, frozen=True, kw_only=True):
    """A person let a seat rest, once for each change; once more when a pause is amended to stop
    the running turn. The seat is `agent_role`, as everywhere."""

    actor: str
    agent_role: str
    summary: str
    stop_running: bool = False


class SeatResumed(Struct, frozen=True, kw_only=True):
    """A person let a paused seat go on."""

    actor: str
    agent_role: str
    summary: str


class OrgStarted(Struct, frozen=True, kw_only=True):
    """The company is served by this node."""

    company: str
    seats: tuple[str, ...] = field(default=())


class OrgStopped(Struct, frozen=True, kw_only=True):
    """The node has drained; `interrupted` are conversations whose turn was not waited for."""

    company: str
    interrupted: tuple[str, ...] = ()
