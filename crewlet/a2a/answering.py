"""A turn that was asked ends: its final text is the answer. An outbox of turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from actors.delivery import Letter
from actors.failpoints import reached
from actors.ports import BrokerError
from crewlet.a2a.channel import Channel, Owed, Reply, over
from crewlet.a2a.channels import Channels
from crewlet.a2a.closing import Closing, told
from crewlet.a2a.wakes import request_id
from crewlet.errors import CrewletError, ReplyRefused
from crewlet.events import catalogue as types
from crewlet.inbound.ids import work_key
from crewlet.inbound.letters import event_of
from crewlet.inbound.outbox import Finished

REFUSED: Final = "its answer was not taken: "

log = structlog.get_logger(__name__)


class Answering:
    """Nothing is sent before the turn is in the ledger, and what is sent is what the channel's
    record says: the answer of a turn that lost its seat is in neither."""

    def __init__(self, channels: Channels, closing: Closing) -> None:
        self._channels = channels
        self._closing = closing

    async def keep(self, finished: Finished) -> str:
        """Write the answer down. One that the channel does not take is lost, and its seat is told
        so on the end of its turn: to run again would not help."""
        asked_on = await self._asked_on(finished.handle, finished.letters)
        refused = [await self._keep(finished, channel) for channel in asked_on]
        return "; ".join(filter(None, refused))

    async def _keep(self, finished: Finished, channel_id: str) -> str:
        reply = Reply(
            text=finished.answer,
            at=finished.at,
            trace=finished.trace,
            by=finished.handle,
            turn_id=finished.turn_id,
            work_key=work_key(letter.id for letter in finished.letters),
            epoch=finished.epoch,
            proof=finished.letters[0].id,
        )
        try:
            await self._channels.advance(channel_id, Owed(reply))
        except ReplyRefused as refusal:
            log.warning("answer_refused", seat=finished.handle, error=str(refusal))
            return f"{REFUSED}{refusal}"
        reached("after_answer_kept")
        return ""

    async def send(self, handle: str, letters: Sequence[Letter]) -> str:
        """Give the answers to those who asked. What fails here is done by the next delivery of
        the question, or by the sweep."""
        try:
            sent = [
                await self._send(handle, channel, [letter.id for letter in letters])
                for channel in await self._asked_on(handle, letters)
            ]
        except (BrokerError, CrewletError) as error:
            log.warning("answer_not_sent", seat=handle, error=told(error))
            return ""
        return "; ".join(filter(None, sent))

    async def _send(self, handle: str, channel_id: str, worked: Sequence[str]) -> str:
        kept = await self._channels.get(channel_id)
        if kept is None or kept.channel.target != handle:
            return ""
        channel, reply = kept.channel, kept.channel.reply
        if channel.state == "answered" and reply and reply.by and reply.proof not in worked:
            return ""  # that of a later turn, which a run goes on in: not completed yet
        await self.go_on(channel)
        # The system's word may have come between the keeping and the end of the turn.
        return f"{REFUSED}{over(channel)}" if channel.given_up else ""

    async def go_on(self, channel: Channel) -> None:
        """Whatever is left to do of a channel whose answering turn has completed."""
        if channel.state == "answered":
            await self._closing.deliver(channel)
        elif channel.state == "closed":
            await self._closing.announce(channel)

    async def _asked_on(self, handle: str, letters: Sequence[Letter]) -> Sequence[str]:
        """The channels on which the seat was asked what these letters are about: a question, or
        the end of a run for which the turn of a question was suspended."""
        events = [event_of(letter) for letter in letters]
        found = [e.value("channel_id", str, "") for e in events if e.type == types.A2A_REQUEST]
        ends = [e for e in events if e.type in (types.RUN_COMPLETED, types.RUN_FAILED)]
        worked = {id for e in ends for id in e.value("triggers", tuple[str, ...], ())}
        if worked:
            for channel in (kept.channel for kept in await self._channels.all()):
                if channel.target == handle and request_id(channel.id) in worked:
                    found.append(channel.id)
        return found
