"""The upkeep of channels: one node of the fleet does it for all.

It looks every quarter of an hour, at once when a question has become a dead letter, and at an
answer that its turn has not handed on within twenty seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import structlog

from actors.ports import BrokerError, Clock
from actors.tenure import Tenure
from crewlet import topics
from crewlet.a2a.answering import Answering
from crewlet.a2a.channel import Owed, Reply
from crewlet.a2a.channels import Channels, Kept
from crewlet.a2a.closing import told
from crewlet.a2a.late import Late
from crewlet.a2a.upkeep import LATE_S, SWEEP_S, Facts, GiveUp, due
from crewlet.a2a.wakes import request_id
from crewlet.broker.port import CompanyBroker, Subscription
from crewlet.company import Company
from crewlet.coordination.store import CHANNELS, Entry, Watch
from crewlet.errors import CrewletError, StoreUnavailable
from crewlet.events import catalogue as types
from crewlet.inbound.ledger import Ledger
from crewlet.runs.store import RunStore

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
        self._runs = RunStore(broker.store)
        self._clock = clock
        self._late = Late()

    async def run(self, tenure: Tenure) -> None:
        """Until it is cancelled. A look that failed is taken again with the next one."""
        nudged = asyncio.Event()
        self._late = Late()
        listening = [await self._listen(nudged), await self._follow()]
        try:
            while True:
                await self._try(self.look(tenure))
                await self._rest(nudged, tenure)
        finally:
            for each in listening:
                if each is not None:
                    await each.close()

    async def _rest(self, nudged: asyncio.Event, tenure: Tenure) -> None:
        """Until the next look at all of them; late answers are looked after meanwhile."""
        until = self._clock.monotonic() + SWEEP_S
        while (left_s := until - self._clock.monotonic()) > 0:
            if await _nudged(nudged, min(left_s, LATE_S)):
                return
            if late := self._late.due(self._clock.monotonic()):
                await self._try(self.look(tenure, late))

    async def _try(self, look: Coroutine[Any, Any, None]) -> None:
        try:
            await look
        except (BrokerError, CrewletError) as error:
            log.warning("channels_not_swept", error=told(error))

    async def look(self, tenure: Tenure, only: Sequence[str] | None = None) -> None:
        """Do what is due of every channel, or of some. One that cannot be helped now holds up no
        other."""
        if only is None:
            kept = await self._channels.all()
        else:
            kept = [one for id in only if (one := await self._channels.get(id)) is not None]
        waiting = any(one.channel.closed_at is None for one in kept)
        dead = await self._dead() if waiting else {}
        worked = await self._worked() if waiting else {}
        for one in kept:
            try:
                facts = await self._facts(one, dead, worked)
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

    async def _facts(
        self, kept: Kept, dead: Mapping[str, str], worked: Mapping[str, datetime]
    ) -> Facts:
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
            worked_until=worked.get(request_id(channel.id)),
        )

    async def _worked(self) -> dict[str, datetime]:
        """Until when a run has been at work for each question that a turn was suspended for."""
        found: dict[str, datetime] = {}
        for kept in await self._runs.list():
            run = kept.run
            until = run.end.at if run.over and run.end is not None else self._clock.now()
            for id in run.origin.triggers:
                found[id] = max(until, found.get(id, until))
        return found

    async def _follow(self) -> Watch | None:
        """Hear of answers as they are written down. What is not heard is found by the next look."""

        def heard(entry: Entry) -> None:
            self._late.heard(entry, self._clock.monotonic())

        try:
            return await self._broker.store.watch(CHANNELS, "", heard)
        except StoreUnavailable as error:
            log.warning("channels_not_followed", error=told(error))
            return None

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


async def _nudged(nudged: asyncio.Event, within_s: float) -> bool:
    """Whether somebody asked for a look within that time."""
    try:
        async with asyncio.timeout(within_s):
            await nudged.wait()
    except TimeoutError:
        return False
    await asyncio.sleep(SETTLE_S)
    nudged.clear()
    return True
