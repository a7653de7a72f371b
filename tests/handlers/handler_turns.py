"""Turns for the handler tests, and waiting without sleeping blindly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

from crewlet.turn import Conversation, SeatView, Turn, TurnEvent

AT = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def a_turn(turn_id: str = "t-1", *, seat: str = "dev", body: str = "please look") -> Turn:
    event = TurnEvent(
        id="e-1",
        type="external_notification",
        timestamp=AT,
        sender="ada",
        subject="Broken build",
        body=body,
        metadata={"number": 7},
        headroom=24,
    )
    return Turn(
        turn_id=turn_id,
        seat=SeatView(handle=seat, name="Dev"),
        company="acme",
        conversation=Conversation(
            partition_key="github:o/r#7", conversation_identity="github:o/r#7"
        ),
        events=(event,),
        headroom=24,
        traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
    )


async def until(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Poll with a deadline."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


class Overdue:
    """An on_overdue that remembers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def __call__(self, turn_id: str, reason: str) -> None:
        self.calls.append((turn_id, reason))
