"""The types that the engine publishes, each filed under one of a closed set of categories."""

from __future__ import annotations

from typing import Final, Literal, get_args

Category = Literal[
    "lifecycle", "task", "a2a", "decision", "notification", "learning", "system", "webhook"
]

CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)

TASK_ASSIGNED: Final = "task_assigned"
SCHEDULED_TASK_FIRED: Final = "scheduled_task_fired"
RUN_STARTED: Final = "sandbox_run_started"
RUN_CLARIFICATION_REQUESTED: Final = "sandbox_clarification_requested"
RUN_COMPLETED: Final = "sandbox_run_completed"
RUN_FAILED: Final = "sandbox_run_failed"
RUN_ANSWERED: Final = "sandbox_run_answered"
A2A_CHANNEL_OPENED: Final = "a2a_channel_opened"
A2A_MESSAGE_SENT: Final = "a2a_message_sent"
A2A_CHANNEL_CLOSED: Final = "a2a_channel_closed"
A2A_REQUEST: Final = "a2a_request"
"""The wake of the seat that is asked; it travels, and is not recorded under this name."""
A2A_MESSAGE: Final = "a2a_message"
"""The wake of the seat that had asked; it travels, and is not recorded under this name."""
EXTERNAL_NOTIFICATION: Final = "external_notification"
NOTIFICATION_SKIPPED: Final = "notification_skipped"
NOTIFICATIONS_COALESCED: Final = "notifications_coalesced"
TURN_TRIGGER_SKIPPED: Final = "turn_trigger_skipped"
AGENT_TURN_STARTED: Final = "agent_turn_started"
AGENT_TURN_COMPLETED: Final = "agent_turn_completed"
AGENT_TURN_STOPPED: Final = "agent_turn_stopped"
LLM_UNAVAILABLE: Final = "llm_unavailable"
TURN_GUARD_BREACH: Final = "turn.guard_breach"
INBOUND_DELIVERY: Final = "inbound_delivery"
RAW_WEBHOOK: Final = "raw_webhook"
"""A delivery on its way to the router: it travels, and is not recorded under this name."""

ORG_STARTED: Final = "org_started"
ORG_STOPPED: Final = "org_stopped"
CONFIG_REVISION_ACTIVATED: Final = "config_revision_activated"
CONFIG_REVISION_APPLIED: Final = "config_revision_applied"
OPERATOR_ACTED: Final = "operator_acted"
SEAT_PAUSED: Final = "seat_paused"
SEAT_RESUMED: Final = "seat_resumed"
SEAT_RETIRED: Final = "seat_retired"
TURN_COMPLETED: Final = "turn_completed"
"""What the seat's reflect mailbox receives: the turn, for whoever learns from it."""

_CATEGORY_OF: Final[dict[str, Category]] = {
    ORG_STARTED: "lifecycle",
    ORG_STOPPED: "lifecycle",
    OPERATOR_ACTED: "lifecycle",
    SEAT_PAUSED: "lifecycle",
    SEAT_RESUMED: "lifecycle",
    SEAT_RETIRED: "lifecycle",
    CONFIG_REVISION_ACTIVATED: "lifecycle",
    CONFIG_REVISION_APPLIED: "lifecycle",
    TASK_ASSIGNED: "task",
    SCHEDULED_TASK_FIRED: "task",
    RUN_STARTED: "task",
    RUN_CLARIFICATION_REQUESTED: "task",
    RUN_COMPLETED: "task",
    RUN_FAILED: "task",
    RUN_ANSWERED: "task",
    A2A_CHANNEL_OPENED: "a2a",
    A2A_MESSAGE_SENT: "a2a",
    A2A_CHANNEL_CLOSED: "a2a",
    EXTERNAL_NOTIFICATION: "notification",
    NOTIFICATION_SKIPPED: "notification",
    NOTIFICATIONS_COALESCED: "notification",
    TURN_TRIGGER_SKIPPED: "notification",
    TURN_COMPLETED: "learning",
    AGENT_TURN_STARTED: "system",
    AGENT_TURN_COMPLETED: "system",
    AGENT_TURN_STOPPED: "system",
    LLM_UNAVAILABLE: "system",
    TURN_GUARD_BREACH: "system",
    INBOUND_DELIVERY: "webhook",
}

_LEFT_OPEN: Final[dict[str, Category]] = {
    "decision_requested": "decision",
    "decision_resolved": "decision",
    "contribution_requested": "decision",
    "contribution_received": "decision",
}
"""The engine publishes none of these: a place for an extension whose company decides by events.
Here a decision is discussed in chat, and asked for by a work item."""


def category(event_type: str) -> Category | None:
    """The category of a type that this build publishes, or leaves open; None of any other."""
    return _CATEGORY_OF.get(event_type) or _LEFT_OPEN.get(event_type)


def published_types() -> tuple[str, ...]:
    return tuple(_CATEGORY_OF)
