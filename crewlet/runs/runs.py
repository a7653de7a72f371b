"""The runs of a company: what may be said of them, and what their seats' nodes make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

import structlog
from msgspec import Struct

from actors.delivery import Ack, Nak, Outcome, Partition
from actors.ports import BrokerError, Clock, NoMailbox
from actors.tenure import Fenced
from crewlet import topics
from crewlet.coordination.store import Conflict, Store
from crewlet.errors import CrewletError, PublishUnknown, StoreUnavailable
from crewlet.events import Event, decode, encode
from crewlet.events import catalogue as types
from crewlet.handlers.outcomes import answered
from crewlet.inbound.ids import derived_id
from crewlet.inbound.ledger import Ledger
from crewlet.inbound.letters import conversation_identity, event_of
from crewlet.inbound.work import Brakes, Work
from crewlet.queue import Published, Publisher
from crewlet.runs import notices
from crewlet.runs.ending import Ending
from crewlet.runs.live import RUN, Live, NoRun
from crewlet.runs.row import (
    Adopted,
    Ended,
    HandedBack,
    IllegalInput,
    Notice,
    Origin,
    Replied,
    Reply,
    Run,
    State,
    Suspended,
    Taken,
    Told,
    Withdrawn,
    opened,
    step,
)
from crewlet.runs.store import Kept, RunStore

KEPT: Final = timedelta(days=1)
"""How long a run that is over can be looked at, and told again by whoever is late."""

LARGEST_REPLY: Final = 1024 * 1024
"""Bytes of an event that a row takes: a row is one message of the store."""

AGAIN_S: Final = 5.0
CONTROL_TRIES: Final = 60
"""A control message is tried for five minutes before it costs a delivery: an outage of the store
is not its failure, and nobody waits behind it who could do more."""

_UNKNOWN: Final = (StoreUnavailable, PublishUnknown, BrokerError, TimeoutError)

log = structlog.get_logger(__name__)


class Opened(Struct, frozen=True):
    """A row as a turn opened it, and what was there before."""

    kept: Kept
    before: Run | None


class Runs:
    """Of one node. What holds its seats it knows by itself."""

    def __init__(
        self,
        store: Store,
        queue: Publisher,
        ledger: Ledger,
        brakes: Brakes,
        clock: Clock,
        node_id: str,
    ) -> None:
        self._store = RunStore(store)
        self._queue = queue
        self._ledger = ledger
        self._clock = clock
        self._node_id = node_id
        self._live = Live(self._store, brakes)
        self._ending = Ending(self._live, queue, ledger, clock, node_id)

    # -- said by whoever runs the work, on any node ---------------------------------------

    async def completed(self, handle: str, run_id: str, text: str = "") -> Published:
        """The run is done, and this is its result: returns once that is stored. Whoever works
        the seat ends the run."""
        return await self._say(handle, types.RUN_COMPLETED, run_id, text)

    async def failed(self, handle: str, run_id: str, reason: str) -> Published:
        """It will not be done."""
        return await self._say(handle, types.RUN_FAILED, run_id, reason)

    async def asks(self, handle: str, run_id: str, question: str) -> Published:
        """It waits for the next message of its conversation, and holds nothing meanwhile. To
        put the question before people is the business of who asks."""
        return await self._say(handle, types.RUN_CLARIFICATION_REQUESTED, run_id, question)

    async def _say(self, handle: str, event_type: str, run_id: str, text: str) -> Published:
        event = notices.said(event_type, run_id, answered(text).answer or "", self._clock.now())
        return await self._queue.publish(topics.control(handle), event)

    async def take(self, handle: str, run_id: str) -> Event:
        """The answer to the run's question, which goes on with it; the same again if asked
        again. NoRun; IllegalInput where no answer has come."""
        kept = await self._read(handle, run_id)
        run = kept.run
        if (reply := run.outbox) is not None and run.state is State.RESUMING:
            given = Taken() if await self._ending.leaves(run, reply) else HandedBack()
            run = (await self._live.change(handle, run_id, given)).run
            await self._live.try_to_brake(handle)
        run = step(run, Taken())
        assert run.reply is not None, "what was taken is there"
        return decode(run.reply.event.encode())

    # -- looked at ------------------------------------------------------------------------

    async def all(self, handle: str = "") -> Sequence[Run]:
        """The runs of a seat, or of every seat, the oldest first; those that are over for a
        day longer."""
        return [kept.run for kept in await self._store.list(handle)]

    async def get(self, handle: str, run_id: str) -> Run:
        """NoRun where there is none."""
        return (await self._read(handle, run_id)).run

    async def _read(self, handle: str, run_id: str) -> Kept:
        kept = await self._store.get(handle, run_id)
        if kept is None:
            raise NoRun(f"there is no run {run_id!r} of {handle}; `crewlet run ls {handle}`")
        return kept

    def of(self, handle: str) -> Sequence[Run]:
        """Those of a seat of this node that are not over, the oldest first; nothing is read."""
        return sorted(self._live.of(handle), key=lambda run: (run.opened_at, run.run_id))

    def holds_of(self, handle: str) -> Sequence[str]:
        """The holds that a seat of this node is taken up with."""
        return (RUN,) if self._live.holds(handle) else ()

    async def holding(self, work: Work) -> str:
        """A reason to hold the seat (crewlet.inbound.steps.holds); nothing is read for it."""
        return RUN if self._live.holds(work.seat.handle) else ""

    # -- a seat comes to this node --------------------------------------------------------

    async def recover(self, handle: str) -> None:
        """Know the seat's runs before its mail is attached. StoreUnavailable: do not attach; a
        run that cannot be read may hold it."""
        rows = await self._store.list(handle)
        self._live.begin(handle, [kept for kept in rows if not kept.run.told])
        for kept in rows:
            if kept.run.told:
                await self._forget(kept)
            else:
                await self._take_over(kept.run)

    async def _take_over(self, run: Run) -> None:
        if await self._is_nobodys(run):
            log.warning("run_withdrawn", seat=run.handle, run=run.run_id, turn=run.origin.turn_id)
            await self._live.change(run.handle, run.run_id, Withdrawn(self._withdrawal(run)))
            return
        try:
            kept = await self._live.change(
                run.handle, run.run_id, Adopted(self._node_id), touch=True
            )
        except (NoRun, IllegalInput):
            return  # its own turn has withdrawn it
        await self._ending.worked(kept.run)
        if kept.run.over:
            try:
                await self._ending.tell(kept)
            except _UNKNOWN as error:  # its control message comes again
                log.warning("run_not_told", seat=run.handle, run=run.run_id, error=str(error))

    async def _is_nobodys(self, run: Run) -> bool:
        """Opened by a turn that had lost its seat, and worked by the one that came after it. A
        turn that goes on keeps its id, also on another node: so it is told by both."""
        origin, triggers = run.origin, run.origin.triggers
        if run.state is not State.RUNNING or not triggers:
            return False
        worked = await self._ledger.worked(run.handle, triggers)
        return len(worked) == len(set(triggers)) and all(
            (row.turn_id, row.node) != (origin.turn_id, origin.node) for row in worked.values()
        )

    async def _forget(self, kept: Kept) -> None:
        run = kept.run
        if run.told and run.end is not None and self._clock.now() - run.end.at > KEPT:
            await self._store.delete(kept)

    async def end_all(self, handle: str, reason: str) -> None:
        """The seat is no more: its runs have failed, which goes to its inbox while there is one,
        and whoever says more of them is late. Raises as soon as something is not known; beginning
        again is safe."""
        for kept in await self._store.list(handle):
            run = kept.run
            if run.told:
                continue
            if not run.over:
                notice = Notice(derived_id(handle, run.run_id, reason), self._clock.now(), reason)
                kept = await self._live.change(handle, run.run_id, Ended(notice, failed=True))
            try:
                await self._ending.tell(kept)
            except NoMailbox:  # it went before, with what else was in it: nobody is to be told
                for given in (HandedBack(), Told()):
                    await self._live.change(handle, run.run_id, given)
        await self._live.try_to_brake(handle)

    # -- a turn suspends ------------------------------------------------------------------

    async def open(self, handle: str, run_id: str, origin: Origin) -> Opened:
        """The row, and the hold with it. Fenced: the seat is somebody else's. StoreUnavailable:
        unknown; the same again is safe."""
        given = Suspended(origin=origin, at=self._clock.now())
        before = await self._store.get(handle, run_id)
        if before is None:
            kept = await self._create(opened(handle, run_id, given))
        elif origin.epoch < before.run.origin.epoch:
            raise Fenced(f"run {run_id} of {handle} is a later holder's")
        else:
            try:
                kept = await self._live.change(handle, run_id, given)
            except IllegalInput as error:
                raise StoreUnavailable(str(error)) from error
        self._queue.record_soon(notices.started(kept.run))
        await self._live.try_to_brake(handle)
        return Opened(kept, None if before is None else before.run)

    async def _create(self, run: Run) -> Kept:
        try:
            return self._live.know(await self._store.create(run))
        except Conflict as error:
            raise StoreUnavailable(f"run {run.run_id} was opened meanwhile; try again") from error

    async def withdraw(self, opened: Opened) -> None:
        """Its turn was fenced: as it was before, unless the seat's holder has written it since."""
        kept, run = opened.kept, opened.kept.run
        before = opened.before or step(run, Withdrawn(self._withdrawal(run)))
        try:
            self._live.know(await self._store.write(kept, before))
        except (Conflict, StoreUnavailable) as error:
            log.warning("run_not_withdrawn", seat=run.handle, run=run.run_id, error=str(error))

    def _withdrawal(self, run: Run) -> Notice:
        id = derived_id(run.handle, run.run_id, run.origin.turn_id, "withdrawn")
        return Notice(id, self._clock.now(), "its turn had lost the seat")

    # -- a message that may be an answer --------------------------------------------------

    def asked(self, handle: str, event: Event) -> Run | None:
        """The run whose question this may answer: the one that has asked for longest. The end of
        another run is no answer. Nothing is read for it."""
        identity = conversation_identity(event)
        if not identity or event.type in notices.ENDS:
            return None
        found = [
            (run.question.at, run.run_id, run)
            for run in self._live.asking(handle)
            if run.origin.conversation_identity == identity
            and run.question is not None
            and event.timestamp > run.question.at
        ]
        return min(found)[2] if found else None

    async def offer(self, run: Run, event: Event) -> bool:
        """Whether the run takes it: then the row has it, and the seat is held. StoreUnavailable:
        unknown; offer it again."""
        body = encode(event)
        if len(body) > LARGEST_REPLY:
            return False
        reply = Reply(event.id, body.decode())
        try:
            kept = await self._live.change(run.handle, run.run_id, Replied(reply))
        except (NoRun, IllegalInput):
            return False
        await self._live.try_to_brake(run.handle)
        await self._queue.record(notices.answered(kept.run, reply, self._clock.now()))
        return True

    # -- control --------------------------------------------------------------------------

    async def control(self, partition: Partition) -> Outcome:
        """What whoever runs the work has said of a run. One that is not there may be about to
        be: its turn may not have ended yet."""
        (letter,) = partition.letters
        handle, event = topics.handle_of(letter.delivery.mailbox.topic), event_of(letter)
        given = notices.input_of(event)
        if handle is None or given is None:
            log.warning("control_unknown", type=event.type, id=event.id)
            return Ack()
        run_id = event.value("run_id", str, "")
        try:
            await _patiently(lambda: self._happens(handle, run_id, given))
        except NoRun as error:
            return Nak(str(error))
        except IllegalInput as error:
            log.info("control_too_late", seat=handle, run=run_id, reason=str(error))
        return Ack()

    async def _happens(self, handle: str, run_id: str, given: notices.Said) -> None:
        kept = await self._live.change(handle, run_id, given)
        if isinstance(given, Ended):
            await self._ending.tell(kept)
        elif kept.run.question is not None:
            await self._queue.record(notices.asked(kept.run, kept.run.question))
        await self._live.brake(handle)
        if isinstance(given, Ended):
            await self._sweep(handle)

    async def _sweep(self, handle: str) -> None:
        """What has been over for long goes when another one ends."""
        try:
            for kept in await self._store.list(handle):
                await self._forget(kept)
        except CrewletError as error:
            log.info("runs_not_swept", seat=handle, error=str(error))


async def _patiently(act: Callable[[], Awaitable[None]]) -> None:
    """Again and again while it is not known whether it was done."""
    for last in range(CONTROL_TRIES):
        try:
            return await act()
        except _UNKNOWN as error:
            if last == CONTROL_TRIES - 1:
                raise
            log.warning("run_control_waits", error=str(error))
            await asyncio.sleep(AGAIN_S)
    raise AssertionError("unreachable")
