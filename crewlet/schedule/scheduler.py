"""The duty of one node: look every ten seconds, claim what is due, put it into inboxes.

A look goes on from where the last one ended that was dealt with whole, whoever made it; until
then nothing is forgotten, and nothing is done twice, since each fire is claimed (docs/adr/0015).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import structlog
from msgspec import Struct

from actors.failpoints import reached
from actors.ports import BrokerError, Clock, NoMailbox
from actors.tenure import Tenure
from crewlet import topics
from crewlet.company import Company
from crewlet.coordination.store import Conflict, Store
from crewlet.errors import CrewletError
from crewlet.events import Event
from crewlet.queue import Publisher
from crewlet.schedule import letters
from crewlet.schedule.claims import Claim, Claims
from crewlet.schedule.fires import Fire, Missed, agenda
from crewlet.schedule.memory import Known, Memories, Memory

TICK_S: Final = 10.0
"""Between two looks, in seconds: a fire is so much late at the most."""

PEEK_S: Final = 1.0
"""How soon a new company is seen: its entries stand from that look on."""

PUBLISH_S: Final = 10.0
"""Of one publish; what is not known by then is said again, under its id, at the next look."""

log = structlog.get_logger(__name__)


class Lapsed(CrewletError):
    """This node may not be the one any more that does it: it does nothing further."""

    code = "lapsed"
    blame = "node"


class _Seen(Struct, frozen=True):
    """What the last look was at, and what it left; nothing comes due before `coming`."""

    company: Company
    memory: Memory
    coming: datetime | None

    def nothing_since(self, company: Company, now: datetime) -> bool:
        """Whether another look would find nothing. A clock that went back deserves one."""
        quiet = self.coming is None or now < self.coming
        return quiet and company is self.company and now >= self.memory.looked


class _Fired(Struct, frozen=True):
    """What became of a fire: whose task had no inbox, and what failed, if anything did."""

    without: tuple[str, ...]
    failed: Exception | None


class Scheduler:
    """`company` is asked anew at each look: a revision may have come."""

    def __init__(
        self,
        company: Callable[[], Company],
        queue: Publisher,
        store: Store,
        clock: Clock,
        node_id: str,
        *,
        peek_s: float = PEEK_S,
    ) -> None:
        self._company = company
        self._peek_s = peek_s
        self._queue = queue
        self._clock = clock
        self._memories = Memories(store)
        self._claims = Claims(store, node_id)
        self._seen: _Seen | None = None

    async def run(self, tenure: Tenure) -> None:
        """Do the duty until cancelled; nothing is kept from an earlier time."""
        self._seen = None
        while True:
            company = self._company()
            await self.tick(tenure)
            await self._rest(company)

    async def _rest(self, company: Company) -> None:
        for _ in range(round(TICK_S / self._peek_s)):
            await asyncio.sleep(self._peek_s)
            if self._company() is not company:
                return

    async def tick(self, tenure: Tenure) -> bool:
        """One look. False where not all of it was dealt with: the next one begins where this one
        did."""
        company, now = self._company(), self._clock.now()
        if self._seen is not None and self._seen.nothing_since(company, now):
            return True
        try:
            self._seen = await self._look(company, now, tenure)
        except (CrewletError, BrokerError) as error:
            self._seen = None  # somebody else may know better by now
            log.warning("schedules_not_looked_at", error=str(error))
            return False
        return True

    async def _look(self, company: Company, now: datetime, tenure: Tenure) -> _Seen:
        self._still_ours(tenure)
        entries = company.schedules
        known = self._seen.memory if self._seen else await self._memories.read()
        memory = (known or Memory(looked=now)).taken_up(entries, now)
        if memory.entries != _entries(known):
            await self._remember(memory, tenure)
        found = agenda(memory.standing(entries), memory.looked, now)
        failures = [await self._missed(missed, tenure) for missed in found.missed]
        fired = {fire.entry.id: await self._fire(fire, tenure) for fire in found.due}
        for failure in (*failures, *(each.failed for each in fired.values())):
            if failure is not None:
                raise failure
        memory = memory.after(found, now, {id: each.without for id, each in fired.items()})
        if found:
            await self._remember(memory, tenure)
        return _Seen(company, memory, found.coming)

    async def _remember(self, memory: Memory, tenure: Tenure) -> None:
        self._still_ours(tenure)
        try:
            await self._memories.write(memory)
        except Conflict as conflict:
            raise Lapsed("another node looks after the schedules") from conflict

    # -- what is due ------------------------------------------------------------------

    async def _fire(self, fire: Fire, tenure: Tenure) -> _Fired:
        """For all whom it is for. One that fails keeps no other from its own."""
        failed: Exception | None = None
        without: list[str] = []
        for target in fire.entry.targets:
            try:
                if not await self._fire_for(fire, target, tenure):
                    without.append(target)
            except Lapsed:
                raise
            except (CrewletError, BrokerError) as error:
                log.warning("schedule_not_fired", name=fire.entry.name, error=str(error))
                failed = error
        return _Fired(tuple(without), failed)

    async def _fire_for(self, fire: Fire, target: str, tenure: Tenure) -> bool:
        """Whether there is, or was when somebody did it, an inbox."""
        self._still_ours(tenure)
        claim = await self._claims.take(fire, target, self._clock.now())
        if claim.done:
            return claim.kept
        reached("after_fire_claimed")
        self._still_ours(tenure)
        kept = await self._put(fire, claim)
        reached("after_fire_published")
        await self._record(letters.fired(fire, claim, kept=kept))
        await self._claims.finish(claim, kept=kept)
        return kept

    async def _put(self, fire: Fire, claim: Claim) -> bool:
        """Into the inbox; False where there is none."""
        try:
            await self._queue.publish(
                topics.inbox(claim.target), letters.task(fire, claim), within_s=PUBLISH_S
            )
        except NoMailbox as error:
            log.error("schedule_undeliverable", name=fire.entry.name, error=str(error))
            return False
        return True

    # -- what is past -----------------------------------------------------------------

    async def _missed(self, missed: Missed, tenure: Tenure) -> Exception | None:
        """Said, but for what somebody has claimed: that is finished, if it is not."""
        self._still_ours(tenure)
        claims = await self._claims.of(missed.entry.id)
        claimed = {claim.label for claim in claims}
        done = {(claim.label, claim.target) for claim in claims if claim.done}
        failed: Exception | None = None
        for fire in missed.fires:
            wanted = {(fire.label, target) for target in missed.entry.targets}
            if fire.label in claimed and not wanted <= done:
                failed = (await self._fire(fire, tenure)).failed or failed
        lost = [fire for fire in missed.fires if fire.label not in claimed]
        if lost and failed is None:
            self._still_ours(tenure)
            at = self._clock.now()
            await self._record(letters.skipped(missed.entry, lost, at, more=missed.more))
        return failed

    async def _record(self, event: Event) -> None:
        """Unlike other records this one is waited for: a fire without it is not done."""
        await self._queue.publish(topics.event(event.type), event, within_s=PUBLISH_S)

    def _still_ours(self, tenure: Tenure) -> None:
        if not tenure.may_start(self._clock.monotonic()):
            raise Lapsed("the lease of this duty was not confirmed a moment ago")


def _entries(memory: Memory | None) -> Mapping[str, Known]:
    return {} if memory is None else memory.entries
