"""The upkeep of channels: one node of the fleet does it for all.

It looks every quarter of an hour, and at once when a question has become a dead letter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from actors.ports import BrokerError, Clock
from actors.tenure import Tenure
from crewlet import topics
from crewlet.a2a.answering import Answering
from crewlet.a2a.channel import Owed, Reply
from crewlet.a2a.channels import Channels, Kept
from crewlet.a2a.closing import told
from crewlet.a2a.upkeep import SWEEP_S, Facts, GiveUp, due
from crewlet.a2a.wakes import request_id
from crewlet.broker.port import CompanyBroker, Subscription
from crewlet.company import Company
from crewlet.errors import CrewletError
from crewlet.events import catalogue as types
from crewlet.inbound.ledger import Ledger

SETTLE_S: Final = 1.0
"""After a dead letter was heard of: it is heard before it can be read, and rarely comes alone."""

DEAD: Final = 200
"""Dead letters that are looked at, newest first. A question that lies further back is given up
when its channel has been idle for long enough."""

_QUESTION: Final = f'"{types.A2A_REQUEST}"'.encode()

log = structlog.get_logger(__name__)


class Sweep:
    """`run` is a duty (crewlet.node.duties)."""

    def __init__(
        self,
        company: Callable[[], Company],
        channels: Channels,
        answering: Answering,
        ledger: Ledger,
        broker: CompanyBroker,
        clock: Clock,
    ) -> None:
        self._company = company
        self._channels = channels
        self._answering = answering
        self._ledger = ledger
        self._broker = broker
        self._clock = clock

    async def run(self, tenure: Tenure) -> None:
        """Until it is cancelled. A look that failed is taken again with the next one."""
        nudged = asyncio.Event()
        listening = await self._listen(nudged)
        try:
            while True:
                try:
                    await self.look(tenure)
                except (BrokerError, CrewletError) as error:
                    log.warning("channels_not_swept", error=told(error))
                await _wait(nudged)
        finally:
            if listening is not None:
                await listening.close()

    async def look(self, tenure: Tenure) -> None:
        """Do what is due of every channel. One that cannot be helped now holds up no other."""
        kept = await self._channels.all()
        waiting = any(one.channel.closed_at is None for one in kept)
        dead = await self._dead() if waiting else {}
        for one in kept:
            try:
                facts = await self._facts(one, dead)
                if not tenure.may_start(self._clock.monotonic()):
                    return  # somebody else may be at it: whoever may, looks again
                await self._tend(one, facts)
            except (BrokerError, CrewletError) as error:
                log.warning("channel_not_tended", channel=one.channel.id, error=told(error))

    async def _tend(self, kept: Kept, facts: Facts) -> None:
        channel = kept.channel
        match due(channel, facts):
            case "deliver" | "announce":
                await self._answering.go_on(channel)
            case "forget":
                await self._channels.forget(channel.id)
            case GiveUp(why=why):
                reply = Reply(text=why, at=facts.now, trace=channel.trace)
                given_up = await self._channels.advance_as_seen(kept, Owed(reply))
                if given_up is not None:  # else it was answered in this moment
                    log.info("ask_given_up", channel=channel.id, seat=channel.asker, why=why)
                    await self._answering.go_on(given_up)

    async def _facts(self, kept: Kept, dead: Mapping[str, str]) -> Facts:
        channel, now = kept.channel, self._clock.now()
        if channel.closed_at is not None:
            return Facts(now)
        proof = channel.reply.proof if channel.reply is not None else ""
        seat = self._company().seat(channel.target)
        return Facts(
            now=now,
            completed=bool(proof) and await self._ledger.has(channel.target, proof),
            dead=dead.get(request_id(channel.id)),
            gone=seat is None or not seat.is_agent,
        )

    # -- dead letters -----------------------------------------------------------------

    async def _dead(self) -> dict[str, str]:
        """Why each question was given up, by its event's id."""
        letters = await self._broker.dead_letters(DEAD)
        return {letter.message_id: letter.reason for letter in letters}

    async def _listen(self, nudged: asyncio.Event) -> Subscription | None:
        """Nothing hangs on it: what is not heard is found by the next look."""

        def heard(_: str, body: bytes) -> None:
            if _QUESTION in body:
                nudged.set()

        try:
            return await self._broker.subscribe(topics.DEAD_LETTERS, heard)
        except BrokerError as error:
            log.warning("dead_letters_not_heard", error=told(error))
            return None


async def _wait(nudged: asyncio.Event) -> None:
    """For the next look."""
    try:
        async with asyncio.timeout(SWEEP_S):
            await nudged.wait()
            await asyncio.sleep(SETTLE_S)
    except TimeoutError:
        return
    nudged.clear()
