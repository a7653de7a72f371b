"""One seat asks another: the question is refused, or it is asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from actors.failpoints import reached
from actors.ports import Clock, NoMailbox
from crewlet import topics
from crewlet.a2a import wakes
from crewlet.a2a.channel import Channel, Withdrawn, channel_id
from crewlet.a2a.channels import Channels
from crewlet.a2a.closing import Closing
from crewlet.a2a.reachable import reachable
from crewlet.company import Company
from crewlet.errors import AskRefused
from crewlet.inbound.desk import Asker
from crewlet.queue import Publisher
from crewlet.turn import SeatView

MAX_DEPTH: Final = 3
"""How often a piece of work may be handed on."""

MAX_BRIEF_BYTES: Final = 1024 * 1024
"""As of an answer: the event that carries it stays far below the largest event."""

KNOWN: Final = 20

log = structlog.get_logger(__name__)


class Asking:
    """The company is read anew for each question."""

    def __init__(
        self,
        company: Callable[[], Company],
        channels: Channels,
        closing: Closing,
        queue: Publisher,
        clock: Clock,
    ) -> None:
        self._company = company
        self._channels = channels
        self._closing = closing
        self._queue = queue
        self._clock = clock

    async def ask(self, asker: Asker, ordinal: int, handle: str, brief: str) -> str:
        """The id of the channel. See `crewlet.inbound.desk.Asks`."""
        brief = brief.encode("utf-8", "replace").decode()
        if why := refusal(self._company(), asker, handle, brief):
            raise AskRefused(why)
        wanted = Channel(
            id=channel_id(asker.handle, asker.work_key, handle, ordinal),
            asker=asker.handle,
            target=handle,
            brief=brief,
            opened_at=self._clock.now(),
            trace=asker.trace.child(),
            depth=asker.depth + 1,
            chain=(*asker.chain, asker.handle),
            turn_id=asker.turn_id,
            work_key=asker.work_key,
            asked_in=asker.conversation,
            work_item=asker.work_item,
        )
        channel, is_new = await self._channels.open(wanted)
        reached("after_channel_opened")
        if channel.state == "open":
            await self._publish(channel)
        elif channel.state == "closed" and channel.reply is None:
            raise AskRefused(channel.reason)
        if not is_new:
            log.info("asked_before", channel=channel.id, seat=asker.handle, turn=asker.turn_id)
        return channel.id

    def colleagues(self, asker: Asker) -> Sequence[SeatView]:
        """Whom this turn may ask; nobody where its work was handed on too often."""
        if asker.depth >= MAX_DEPTH:
            return ()
        near = reachable(self._company(), asker.handle)
        return [SeatView(handle=s.handle, name=s.name, unit=s.unit, goal=s.goal) for s in near]

    async def _publish(self, channel: Channel) -> None:
        """As the record has it: an earlier run of the turn may have been cut off before this."""
        await self._queue.record(wakes.opened(channel))
        await self._queue.record(wakes.asked(channel))
        try:
            await self._queue.publish(topics.inbox(channel.target), wakes.request(channel))
        except NoMailbox:
            why = (
                f"{channel.target} has no mailbox, so nobody would ever read it: "
                f"`crewlet seat attach {channel.target}` makes one"
            )
            await self._closing.end(channel.id, Withdrawn(self._clock.now(), why))
            raise AskRefused(why) from None
        reached("after_request_published")


def refusal(company: Company, asker: Asker, handle: str, brief: str) -> str:
    """Why this may not be asked, with the way out; empty where it may."""
    seat = company.seat(handle)
    if seat is None or not seat.is_agent:
        known = ", ".join(s.handle for s in reachable(company, asker.handle)[:KNOWN])
        what = "is a human, whom no turn wakes" if seat else "is no seat of this company"
        return f"{handle[:64]!r} {what}; you may ask: {known or 'nobody'}"
    if handle == asker.handle:
        return f"{handle} would ask itself: do it in this turn"
    if asker.depth >= MAX_DEPTH:
        path = " -> ".join((*asker.chain, asker.handle))
        return (
            f"this work was handed on {asker.depth} times ({path}), and {MAX_DEPTH} is the most: "
            "finish it with what you have"
        )
    if not brief.strip():
        return "the question is empty: say what you want to know"
    if len(brief.encode()) > MAX_BRIEF_BYTES:
        return f"the question is longer than {MAX_BRIEF_BYTES} bytes: say where the rest is"
    return ""
