"""Has a node work by the active revision of its company: at its start, and from then on.

The store decides. A nudge is heard at once, and without one the store is looked at every 15 s: what
is lost costs a look. A revision that cannot be worked by here changes nothing here.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

import structlog

from actors.failpoints import reached
from actors.ports import BrokerError, Clock
from actors.runtime import SeatRuntime
from crewlet import topics
from crewlet.broker.port import CompanyBroker, Subscription
from crewlet.company import Company, parse_company
from crewlet.coordination.store import Conflict
from crewlet.errors import ConfigError, NodeRefused, StoreUnavailable
from crewlet.events import Event
from crewlet.events import catalogue as types
from crewlet.inbound.steps.holds import NO_HANDLER
from crewlet.node.brakes import SeatBrakes
from crewlet.node.fleet import BEHIND, REVISION, FleetView
from crewlet.node.hands import Hands
from crewlet.node.mailboxes import ensure_mailboxes, first_mailboxes
from crewlet.queue import Publisher
from crewlet.revisions.difference import Difference, difference
from crewlet.revisions.news import News
from crewlet.revisions.revision import Revision, digest_of, revision_of
from crewlet.revisions.roster import Roster
from crewlet.revisions.standing import Standing
from crewlet.revisions.start import at_start
from crewlet.revisions.store import Active, Revisions

LOOK_S: Final = 15.0
SPREAD: Final = 0.2
"""The store is looked at every 15 s, give or take a fifth, so that a fleet does not ask at once."""

LIFT_S: Final = 60.0
"""A seat that was given a handler is let go of for so long: a delivery that was under way, or a
hand-off, may hold it once more for the reason that is gone."""

TRIES: Final = 40
AGAIN_S: Final = 0.5
"""Of the first look, while a broker that has just started elects its leader."""

SHOWN: Final = 200
"""Characters of a reason that stand in a node's row."""

Follow = Callable[[Company], Awaitable[None]]
"""Called with the company once the node works by it."""

log = structlog.get_logger(__name__)


class Reconciled(Protocol):
    """The node whose company this is: what of it is asked, and what is changed."""

    company: Company
    hands: Hands
    broker: CompanyBroker
    queue: Publisher
    runtime: SeatRuntime
    fleet: FleetView
    clock: Clock

    @property
    def node_id(self) -> str: ...


class Reconcile:
    """`built` makes the hands of a company, or refuses it (ConfigError)."""

    def __init__(self, node: Reconciled, built: Callable[[Company], Hands]) -> None:
        self.standing = Standing()
        self.revisions = Revisions(node.broker.store)
        self.roster = Roster(node.broker.store, node.clock)
        self.notice = ""
        """What a person who started the node has to know of its company."""
        self._node = node
        self._built = built
        self._news = News(node.queue, node.clock)
        self._brakes = SeatBrakes(lambda: node.runtime)
        self._followers: list[Follow] = []
        self._to_lift: dict[str, float] = {}
        self._one_at_a_time = asyncio.Lock()
        self._nudged = asyncio.Event()
        self._random = random.Random(node.node_id)  # noqa: S311 - a spread, not a secret
        self._nudges: Subscription | None = None
        self._task: asyncio.Task[None] | None = None

    def facts(self) -> Mapping[str, str]:
        """What the node's row says of it: the revision, and the one that it cannot take."""
        standing = self.standing
        found = {REVISION: str(standing.number)} if standing.number else {}
        if standing.wanted:
            reason = " ".join(standing.reason.split())[:SHOWN]
            found[BEHIND] = f"{standing.state} at revision {standing.wanted}: {reason}"
        return found

    # -- the start ----------------------------------------------------------------------

    async def begin(self, *, alone: bool, forced: bool) -> None:
        """Choose the company before anything is made of it, and register its seats. NodeRefused
        where the active revision cannot be worked by here; see `at_start`."""
        while not await self._has_begun(alone=alone, forced=forced):
            pass  # somebody applied another one meanwhile
        await self.roster.register(seat.handle for seat in self._node.company.agents())

    async def _has_begun(self, *, alone: bool, forced: bool) -> bool:
        own, active = self._node.company, await self._first_look()
        last = None if active is None else active.revision
        past: list[str] = []
        if last is not None and digest_of(own.source_text) != last.digest:
            past = [each.digest for each in await self.revisions.all()]
        match at_start(own, last, past, alone=alone, forced=forced):
            case "apply":
                return await self._is_applied(own, active)
            case "active" if last is not None:
                self._work_by_active(last)
            case "file" if last is not None:
                self.standing = self.standing.taken(last)
        return True

    async def _first_look(self) -> Active | None:
        for _ in range(TRIES):
            try:
                return await self.revisions.active()
            except StoreUnavailable as error:
                log.info("revision_not_read_yet", error=str(error))
            await asyncio.sleep(AGAIN_S)
        return await self.revisions.active()

    async def _is_applied(self, own: Company, active: Active | None) -> bool:
        """The node's file becomes the active revision; False where others were first."""
        last = None if active is None else active.revision
        now, by = self._node.clock.now(), self._node.node_id
        revision = revision_of(own, after=last, by=by, at=now)
        try:
            await self.revisions.activate(revision, active)
        except Conflict:
            return False
        self.standing = self.standing.taken(revision)
        await self._news.activated(revision, self._change(last, own))
        if last is not None:
            log.info("file_applied", revision=revision.number, before=last.number)
        return True

    def _work_by_active(self, active: Revision) -> None:
        way = "mend that, or put a file that can be worked by in its place: `crewlet up --apply`"
        try:
            company = parsed(active)
            self._node.company, self._node.hands = company, self._built(company)
        except ConfigError as error:
            raise NodeRefused(
                f"revision {active.number} of {active.company} is active, and cannot be worked by "
                f"here; {way}:\n{error}"
            ) from None
        self.standing = self.standing.taken(active)
        self.notice = (
            f"revision {active.number} is active, which {active.by} applied at "
            f"{active.at:%Y-%m-%d %H:%M:%S} UTC: it runs, and not the file; `crewlet up --apply` "
            "puts the file in its place"
        )
        log.warning("file_not_applied", revision=active.number, by=active.by)

    # -- from then on ---------------------------------------------------------------------

    def tell(self, follow: Follow) -> None:
        """Have somebody told of each company that this node takes from now on."""
        self._followers.append(follow)

    async def start(self) -> None:
        """Follow what is applied, until `stop`."""
        self._nudged.set()  # for what was applied since the first look
        self._nudges = await self._node.queue.subscribe_stream(topics.CONFIG, self._heard)
        self._task = asyncio.create_task(self._run(), name="reconcile")

    async def stop(self) -> None:
        if self._nudges is not None:
            await self._nudges.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _heard(self, topic: str, event: Event) -> None:
        if event.type == types.CONFIG_REVISION_ACTIVATED:
            if event.value("revision", int, 0) == 0:  # it is active already: try it again
                self.standing = self.standing.afresh()
            self._nudged.set()

    async def _run(self) -> None:
        while True:
            wait_s = LOOK_S * self._random.uniform(1 - SPREAD, 1 + SPREAD)
            try:
                async with asyncio.timeout(wait_s):
                    await self._nudged.wait()
            except TimeoutError:
                pass
            self._nudged.clear()
            try:
                await self.look()
            except Exception:
                log.exception("reconcile_failed")

    async def look(self) -> None:
        """Take the active revision if it is another one than ours. What is unknown changes
        nothing, and is looked at again."""
        async with self._one_at_a_time:
            try:
                active = await self.revisions.active()
                if active is not None and self.standing.tries_now(active.revision):
                    await self._take(active.revision)
            except (StoreUnavailable, BrokerError) as error:
                log.warning("revision_waits", error=str(error))
            await self._lift()

    async def _take(self, active: Revision) -> None:
        """The mailboxes of new seats are there before anything is routed to them: each producer
        reads the node's company when it handles an event."""
        try:
            company = parsed(active)
            if company.name != self._node.company.name:
                raise ConfigError(f"it is of another company: {company.name!r}")
            hands = self._built(company)
        except ConfigError as error:
            await self._refuse(active, str(error))
            return
        await self.roster.register(seat.handle for seat in company.agents())
        await ensure_mailboxes(self._node.broker, first_mailboxes(company))
        reached("mid_config_take")
        self._swap(active, company, hands)
        for follow in self._followers:
            await follow(company)
        await self._news.taken(self.standing, self._node.node_id)

    def _swap(self, active: Revision, company: Company, hands: Hands) -> None:
        node, before = self._node, self._node.hands
        node.company, node.hands = company, hands
        self.standing = self.standing.taken(active)
        until = node.clock.monotonic() + LIFT_S
        for seat in company.agents():
            if _works(hands, seat.handle) and not _works(before, seat.handle):
                self._to_lift[seat.handle] = until
        node.runtime.reconsider(self.facts())
        log.info("revision_applied", node=node.node_id, revision=active.number)

    async def _refuse(self, active: Revision, reason: str) -> None:
        self.standing = self.standing.refused(active, reason)
        self._node.runtime.reconsider(self.facts())
        log.error(
            "revision_refused",
            node=self._node.node_id,
            revision=active.number,
            state=self.standing.state,
            reason=reason,
        )
        await self._news.refused(active, self.standing, self._node.node_id)

    async def _lift(self) -> None:
        """Seats that had no handler and have one now."""
        now, node = self._node.clock.monotonic(), self._node
        for handle, until in list(self._to_lift.items()):
            if until <= now or not _works(node.hands, handle):
                del self._to_lift[handle]
            if node.fleet.owner_of(handle) == node.node_id and _works(node.hands, handle):
                try:
                    await self._brakes.lift(handle, NO_HANDLER)
                except TimeoutError:
                    log.warning("hold_not_lifted", seat=handle)

    # -- what operators ask -------------------------------------------------------------

    def checked(self, text: str, name: str) -> Company:
        """The company of a file, if this node could work by it; ConfigError with every problem.
        `name` stands for the file in messages."""
        company = parse_company(text, name=name, env=os.environ)
        self._built(company)
        return company

    async def apply(self, company: Company, after: Active | None, by: str) -> Revision:
        """Make it the active revision and take it here, in the place of `after`; a company that
        is active already is only tried again. Conflict where others came first."""
        active = None if after is None else after.revision
        if active is not None and active.digest == digest_of(company.source_text):
            self.standing = self.standing.afresh()
            await self._news.again()
            await self.look()
            return active
        now = self._node.clock.now()
        revision = revision_of(company, after=active, by=by, at=now)
        change = self._change(active, company)
        await self.revisions.activate(revision, after)
        reached("after_config_activated")
        await self._news.activated(revision, change)
        await self.look()
        return revision

    def _change(self, old: Revision | None, new: Company) -> Difference:
        """Where the old one cannot be read here, everything is new."""
        try:
            before = parsed(old) if old is not None else Company(name=new.name)
        except ConfigError:
            before = Company(name=new.name)
        return difference(before, new)


def parsed(revision: Revision) -> Company:
    """The company as it is on this node: with this node's environment. ConfigError where it is
    none here."""
    name = f"revision {revision.number}"
    return parse_company(revision.source_text, name=name, env=os.environ)


def _works(hands: Hands, handle: str) -> bool:
    at_work = hands.at_work(handle)
    return at_work is not None and at_work.handler is not None
