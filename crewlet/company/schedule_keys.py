"""The keys of schedules in the company file."""

from __future__ import annotations

from typing import Final

from crewlet.company.key import Key
from crewlet.company.model import TURN_TIMEOUT_S
from crewlet.schedule.entry import MAX_JITTER_S

SCHEDULING: Final = {
    "timezone": Key(
        shape="line",
        default="UTC",
        example="Europe/Berlin",
        about="The time zone of every schedule that names none.",
    ),
}

SCHEDULE: Final = {
    "name": Key(shape="line", required=True, example="standup", about="What people call it."),
    "cron": Key(
        shape="line",
        required=True,
        example="0 9 * * MON-FRI",
        about="When: minute, hour, day of month, month, day of week.",
    ),
    "text": Key(
        shape="text", required=True, example="Say what is open", about="What is to be done."
    ),
    "zone": Key(
        shape="line",
        default="that of `scheduling`",
        spellings=("timezone",),
        example="Asia/Kolkata",
        about="The time zone that the times are meant in.",
    ),
    "target": Key(
        shape="line",
        default="each",
        choices=("each", "lead"),
        example="lead",
        about="Of a unit: who gets it, each of its own agents or the lead.",
    ),
    "timeout_s": Key(
        shape="number",
        default="180",
        minimum=1,
        maximum=TURN_TIMEOUT_S,
        example="600",
        about="How many seconds its turn may take, unless the handler allows fewer.",
    ),
    "jitter_s": Key(
        shape="integer",
        default="0",
        minimum=0,
        maximum=MAX_JITTER_S,
        example="300",
        about="Spread it over so many seconds: always equally late, by what it says.",
    ),
}
