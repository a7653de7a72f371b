"""How a channel ends: the word for the asker goes out, the record closes, its end is said.

Whoever is cut off in between leaves the rest to the next who comes: each step finds what the one
before it left, and says it again under the same id.
"""

from __future__ import annotations

import structlog

from actors.failpoints import reached
from actors.ports import BrokerError, Clock, NoMailbox
from crewlet import topics
from crewlet.a2a import wakes
from crewlet.a2a.channel import Announced, Channel, Told, Withdrawn
from crewlet.a2a.channels import Channels
from crewlet.errors import CrewletError
from crewlet.queue import Publisher

log = structlog.get_logger(__name__)


class Closing:
    """From an answered channel to one whose end is in the record. Each verb raises a BrokerError
    or a CrewletError where it could not; what is done stays done."""

    def __init__(self, channels: Channels, queue: Publisher, clock: Clock) -> None:
        self._channels = channels
        self._queue = queue
        self._clock = clock

    async def deliver(self, channel: Channel) -> None:
        """Give the asker its word, and close. Not before the answering turn has completed."""
        assert channel.state == "answered" and channel.reply is not None
        if channel.reply.by:
            await self._queue.record(wakes.answered(channel))
        try:
            await self._queue.publish(topics.inbox(channel.asker), wakes.message(channel))
        except NoMailbox:
            log.warning("asker_is_gone", channel=channel.id, seat=channel.asker)
        reached("after_answer_published")
        await self.end(channel.id, Told(self._clock.now()))

    async def end(self, id: str, how: Told | Withdrawn) -> None:
        """Close the record, and say so."""
        channel, _ = await self._channels.advance(id, how)
        reached("after_channel_closed")
        await self.announce(channel)

    async def announce(self, channel: Channel) -> None:
        """Put the end into the record of events, unless it is there. Not known to be there: it is
        said again later, under its id."""
        if channel.announced:
            return
        event = wakes.closed(channel)
        await self._queue.publish(topics.event(event.type), event, within_s=10.0)
        await self._channels.advance(channel.id, Announced())


def told(error: BrokerError | CrewletError) -> str:
    """What to log of one."""
    return f"{type(error).__name__}: {error}"
