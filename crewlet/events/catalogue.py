"""The types that the engine publishes, each filed under one of a closed set of categories."""

from __future__ import annotations

from typing import Final, Literal, get_args

Category = Literal[
    "lifecycle", "task", "a2a", "decision", "notification", "learning", "system", "webhook"
]

CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)

TASK_ASSIGNED: Final = "task_assigned"
EXTERNAL_NOTIFICATION: Final = "external_notification"
NOTIFICATION_SKIPPED: Final = "notification_skipped"
TURN_TRIGGER_SKIPPED: Final = "turn_trigger_skipped"
AGENT_TURN_STARTED: Final = "agent_turn_started"
AGENT_TURN_COMPLETED: Final = "agent_turn_completed"
TURN_GUARD_BREACH: Final = "turn.guard_breach"
INBOUND_DELIVERY: Final = "inbound_delivery"
RAW_WEBHOOK: Final = "raw_webhook"
"""A delivery on its way to the router: it travels, and is not recorded under this name."""

ORG_STARTED: Final = "org_started"
ORG_STOPPED: Final = "org_stopped"
OPERATOR_ACTED: Final = "operator_acted"
SEAT_PAUSED: Final = "seat_paused"
SEAT_RESUMED: Final = "seat_resumed"
TURN_COMPLETED: Final = "turn_completed"
"""What the seat's reflect mailbox receives: the turn, for whoever learns from it."""

_CATEGORY_OF: Final[dict[str, Category]] = {
    ORG_STARTED: "lifecycle",
    ORG_STOPPED: "lifecycle",
    OPERATOR_ACTED: "lifecycle",
    SEAT_PAUSED: "lifecycle",
    SEAT_RESUMED: "lifecycle",
    TASK_ASSIGNED: "task",
    EXTERNAL_NOTIFICATION: "notification",
    NOTIFICATION_SKIPPED: "notification",
    TURN_TRIGGER_SKIPPED: "notification",
    TURN_COMPLETED: "learning",
    AGENT_TURN_STARTED: "system",
    AGENT_TURN_COMPLETED: "system",
    TURN_GUARD_BREACH: "system",
    INBOUND_DELIVERY: "webhook",
}


def category(event_type: str) -> Category | None:
    """The category of a type that this build publishes, None of any other."""
    return _CATEGORY_OF.get(event_type)


def published_types() -> tuple[str, ...]:
    return tuple(_CATEGORY_OF)
