"""The duty that retires seats which the company has not any more: their mailboxes, and the mail.

It decides nothing while it does not know: a roster that cannot be read, or a node that is behind
the active revision, stamps and retires nothing. Whoever retires a seat has the seat's own lease, so
that nobody works it, and a mark on its record, so that whoever comes after finds what was begun
(docs/adr/0016).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog
from msgspec.structs import replace

from actors.delivery import Mailbox
from actors.holding import claim
from actors.ports import BrokerError
from actors.tenure import SEAT, Lease, Tenure
from crewlet import topics
from crewlet.coordination.store import Conflict
from crewlet.errors import CrewletError
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.revisions import SeatRetired
from crewlet.inbound.ids import derived_id
from crewlet.node.shared_fleet import SharedFleet
from crewlet.node.view import NodeView
from crewlet.revisions import retirement
from crewlet.revisions.retirement import Retire, SeatRecord, next_step
from crewlet.revisions.roster import WORK_S, Known

SWEEP_S: Final = 900.0
"""Seats are looked at every 15 minutes (docs/contract.md 152)."""

OWNER: Final = ":retirement"
"""The end of the owner's name in the row of a seat that is being retired: no node works it."""

BOXES: Final = (topics.inbox_of, topics.control_of, topics.reflect_of)

log = structlog.get_logger(__name__)


class Retirement:
    """`run` is the duty."""

    def __init__(self, node: NodeView, leases: SharedFleet) -> None:
        self._node = node
        self._leases = leases

    async def run(self, tenure: Tenure) -> None:
        while True:
            try:
                await self.sweep(tenure)
            except (CrewletError, BrokerError) as error:
                log.warning("retirement_put_off", error=str(error))
            await asyncio.sleep(SWEEP_S)

    async def sweep(self, tenure: Tenure) -> None:
        """Look at every seat that anybody knows of, once."""
        await self._let_go_of_leftovers(tenure)
        wanted = await self._wanted()
        if wanted is None:
            return
        known, boxes = await self._node.reconcile.roster.all(), await self._boxes()
        mail = {handle: sum(counts.values()) for handle, counts in boxes.items()}
        for handle in sorted({*known, *mail, *wanted}):
            if not tenure.may_start(self._node.clock.monotonic()):
                return
            await self._look(handle, known, mail, wanted, tenure)
            if handle in wanted and topics.inbox_of(handle) not in boxes.get(handle, {}):
                await self._mend(handle)

    async def _wanted(self) -> frozenset[str] | None:
        """The seats of the active revision; None where this node cannot say what they are."""
        active = await self._node.reconcile.revisions.active()
        if active is None or not self._node.reconcile.standing.is_at(active.revision):
            log.info("retirement_put_off", error="this node is not at the active revision")
            return None
        return frozenset(seat.handle for seat in self._node.company.agents())

    async def _boxes(self) -> Mapping[str, Mapping[Mailbox, int]]:
        """How many messages lie in each mailbox that the broker has, by seats."""
        found: dict[str, dict[Mailbox, int]] = {}
        for state in await self._node.broker.list(topics.AGENT):
            if handle := topics.handle_of(state.mailbox.topic):
                boxes = found.setdefault(handle, {})
                boxes[state.mailbox] = state.waiting + state.in_flight
        return found

    async def _look(
        self,
        handle: str,
        known: Mapping[str, Known | None],
        mail: Mapping[str, int],
        wanted: frozenset[str],
        tenure: Tenure,
    ) -> None:
        last = known.get(handle)
        if last is None and handle in known:
            return  # a later build wrote it: unknown
        record, now = None if last is None else last.record, self._node.clock.now()
        step = next_step(record, wanted=handle in wanted, listed=handle in mail, now=now)
        try:
            if isinstance(step, SeatRecord):
                await self._node.reconcile.roster.write(handle, step, last)
                if step.state == "absent":
                    log.info("seat_absent", seat=handle, mail=mail.get(handle, 0))
            elif isinstance(step, Retire) and last is not None:
                await self._retire(handle, last, mail.get(handle, 0), tenure)
        except Conflict:
            return  # it is being registered: the next sweep sees what it is then

    # -- one seat -----------------------------------------------------------------------

    async def _retire(self, handle: str, known: Known, mail: int, tenure: Tenure) -> None:
        mine = await self._claimed(handle, tenure)
        if mine is None:
            return
        try:
            async with asyncio.timeout(WORK_S):
                await self._destroy(handle, known, mail, tenure)
        except TimeoutError:
            log.warning("seat_not_retired_in_time", seat=handle)
        finally:
            await self._restore(handle)
            await self._released(mine)

    async def _claimed(self, handle: str, tenure: Tenure) -> Lease | None:
        """The seat's lease, under this node's session; None while anybody has it."""
        if holder := self._node.fleet.owner_of(handle):
            log.info("absent_seat_is_worked", seat=handle, node=holder)
            return None
        node, row = self._node.node_id, self._leases.row_of(SEAT + handle)
        owner = f"{node}{OWNER}"
        lease = claim(handle, row, owner=owner, node=node, session=tenure.under)
        try:
            return await self._leases.write(lease)
        except BrokerError as error:
            log.info("absent_seat_not_claimed", seat=handle, error=str(error))
            return None

    async def _destroy(self, handle: str, known: Known, mail: int, tenure: Tenure) -> None:
        """Raises Conflict where the seat came back meanwhile: it has won."""
        roster, clock, by = self._node.reconcile.roster, self._node.clock, self._node.node_id
        marked = retirement.retiring(known.record, by=by, now=clock.now(), mail=mail)
        mark = await roster.write(handle, marked, known)
        wanted = await self._wanted()
        if wanted is None or handle in wanted:  # it came back while we claimed it
            await roster.write(handle, retirement.spared(marked), mark)
            return
        await self._node.runs.end_all(handle, f"the company has no agent {handle} any more")
        for box in BOXES:
            # A mark that nobody has taken off is good for longer than this may take (WAIT_S).
            marked = retirement.retiring(marked, by=by, now=clock.now())
            mark = await roster.write(handle, marked, mark)
            if not tenure.may_settle(clock.monotonic()):
                log.warning("retirement_broken_off", seat=handle)
                return
            await self._node.broker.delete(box(handle))
        await self._announce(handle, marked)
        await roster.write(handle, retirement.retired(marked, now=clock.now()), mark)
        log.warning("seat_retired", seat=handle, mail=marked.mail)

    async def _announce(self, handle: str, marked: SeatRecord) -> None:
        """Under an id of the absence: whoever ends what another began says nothing new."""
        since = marked.absent_since or marked.since
        messages = "1 message" if marked.mail == 1 else f"{marked.mail} messages"
        body = SeatRetired(
            agent_role=handle,
            absent_since=since,
            mail=marked.mail,
            summary=f"{handle} is retired: its mailboxes are gone, and {messages} with them",
        )
        event = Event.new(
            types.SEAT_RETIRED,
            id=derived_id(types.SEAT_RETIRED, handle, since.isoformat()),
            at=self._node.clock.now(),
            trace=Trace.root(),
            body=body,
        )
        await self._node.queue.record(event)

    async def _restore(self, handle: str) -> None:
        """A seat that was taken back, by somebody who waited for the end of this for as long as
        anybody does: what was deleted may be what had been made for it."""
        try:
            last = await self._node.reconcile.roster.of(handle)
            if last is None or last.record.state != "present":
                return
            log.error("retired_seat_came_back", seat=handle)
            for box in BOXES:
                await self._node.broker.ensure(box(handle))
        except (CrewletError, BrokerError) as error:
            log.error("retired_seat_not_looked_after", seat=handle, error=str(error))

    async def _mend(self, handle: str) -> None:
        """A seat of the company has no inbox: one was deleted after it had come back, by a request
        that lay on its way for long. What is sent to it from now on is kept."""
        if await self._node.broker.ensure(topics.inbox_of(handle)):
            log.error("seat_had_no_mailbox", seat=handle)

    # -- leases -------------------------------------------------------------------------

    async def _released(self, mine: Lease) -> None:
        try:
            await self._leases.write(replace(mine, released=True))
        except BrokerError as error:
            log.warning("retired_seat_not_released", lease=mine.resource, error=str(error))

    async def _let_go_of_leftovers(self, tenure: Tenure) -> None:
        """One node does this duty at a time: a seat that is held for it now was held by somebody
        who died, or could not be heard, before it let go."""
        for row in self._leases.rows():
            if row.owner.endswith(OWNER) and not row.released:
                if not tenure.may_settle(self._node.clock.monotonic()):
                    return
                await self._released(row)
