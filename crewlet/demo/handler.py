"""The demo company's handler: it looks at what came in and says, shortly, what it did."""

from __future__ import annotations

import asyncio
from typing import Final

from crewlet.turn import Turn, TurnEvent

WORK_S: Final = 0.3
"""Long enough to see a seat at work."""

MOST: Final = 60
"""Characters of a quoted subject."""

_DONE: Final = (
    "looked into {what} and left a note",
    "worked through {what} and wrote down the next step",
    "read {what} and answered it",
    "took care of {what}",
)


async def work(turn: Turn) -> str:
    """A sentence about the turn; the same turn always gets the same one."""
    await asyncio.sleep(WORK_S)
    name = turn.seat.name or turn.seat.handle
    done = _DONE[sum(turn.turn_id.encode()) % len(_DONE)].format(what=_what(turn))
    again = f" (attempt {turn.attempt})" if turn.attempt > 1 else ""
    return f"{name} {done}{again}."


def _what(turn: Turn) -> str:
    if len(turn.events) > 1:
        senders = sorted({event.sender for event in turn.events if event.sender})
        by = f" from {' and '.join(senders)}" if 0 < len(senders) <= 2 else ""
        return f"{len(turn.events)} messages{by}"
    if not turn.events:
        return "an empty inbox"
    return _one(turn.events[0])


def _one(event: TurnEvent) -> str:
    text = " ".join((event.subject or event.body).split())
    short = text if len(text) <= MOST else text[: MOST - 1].rstrip() + "…"
    quoted = f"“{short}”" if short else f"a {event.type.replace('_', ' ')}"
    return f"{quoted} from {event.sender}" if event.sender else quoted
