"""What is due of a channel that nobody works on: decided from what is known, and nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from crewlet.a2a.channel import Channel

IDLE: Final = timedelta(hours=1)
"""Three times the longest that a turn can still be running: no answer comes after that."""

KEPT: Final = timedelta(days=7)
"""How long the record of a closed channel is the answer to "why was my reply not taken"."""

LATE_S: Final = 20.0
"""An answer that has not reached its asker by then is looked after: its turn sends it within a
second or two."""

LATE_TRIES: Final = 6
"""Looks at one such answer; then it waits for the sweep. Its turn has half a minute to complete."""

SWEEP_S: Final = 900.0
"""Between two looks: a channel is closed at most that much later than it is due."""

GONE: Final = timedelta(seconds=SWEEP_S)
"""How long a seat has to have been missing from this node's company: a node that is behind the
company's revision catches up long before."""


class Facts(Struct, frozen=True):
    """`completed`: the ledger has the turn that gave the answer. `dead`: why the question was given
    up, None where it was not. `gone`: the company has no such seat any more. `worked_until`: a run
    that goes on with the question was at work then, None where there is no such run."""

    now: datetime
    completed: bool = False
    dead: str | None = None
    gone: bool = False
    worked_until: datetime | None = None

    def quiet(self, channel: Channel) -> timedelta:
        """For how long nothing has happened on it, in the channel or in the work for it."""
        since = channel.quiet_since
        return self.now - (since if self.worked_until is None else max(since, self.worked_until))


class GiveUp(Struct, frozen=True):
    """Tell the asker that no answer comes, and why."""

    why: str


Due: TypeAlias = Literal["nothing", "deliver", "announce", "forget"] | GiveUp


def due(channel: Channel, facts: Facts) -> Due:
    """What has to be done of it now."""
    if channel.closed_at is not None:
        if facts.now - channel.closed_at >= KEPT:
            return "forget"
        return "nothing" if channel.announced else "announce"
    if channel.state == "answered" and (channel.given_up or facts.completed):
        return "deliver"
    why = _hopeless(channel, facts)
    return GiveUp(f"{why} Asked on channel {channel.id}.") if why else "nothing"


def _hopeless(channel: Channel, facts: Facts) -> str:
    """Why no answer will come: a sentence for the seat that waits for it."""
    target, quiet = channel.target, facts.quiet(channel)
    if facts.dead is not None:
        return f"{target} could not work the question, and it became a dead letter: {facts.dead}."
    if facts.gone and quiet >= GONE:
        return f"{target} is no seat of this company any more."
    if quiet >= IDLE:
        return f"{target} has not answered for an hour, and its answer is not waited for any more."
    return ""
