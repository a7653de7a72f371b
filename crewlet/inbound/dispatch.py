"""From a partition of a seat's inbox to a settled turn, in named steps:

same-id duplicates fall away; what the ledger holds falls away, visibly; the turn waits for a
slot; it starts, runs, and - if it finished - is recorded before its mail is acknowledged.
The record carries the seat's fence: where the seat is somebody else's by then, it is refused, and
nothing more is done in the turn's name.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog
from msgspec import Struct

from actors.delivery import Ack, Defer, Fence, Letter, Nak, Outcome, Partition, Partly
from actors.failpoints import reached
from actors.ports import BrokerError, Clock
from actors.tenure import Fenced
from crewlet import topics
from crewlet.company import Seat
from crewlet.errors import CrewletError, StoreUnavailable
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.types import AgentTurnCompleted, AgentTurnStarted, TurnTriggerSkipped
from crewlet.handlers import Handler
from crewlet.handlers.outcomes import outcome_of, raised
from crewlet.inbound.build_turn import build_turn
from crewlet.inbound.followers import Followers
from crewlet.inbound.ids import derived_id
from crewlet.inbound.ledger import Ledger, Worked
from crewlet.inbound.letters import event_of
from crewlet.inbound.running import RunningTurn, Turns
from crewlet.queue import Publisher
from crewlet.turn import Turn

ALREADY_WORKED = "a finished turn has worked this trigger"

UNCONFIRMED = "the node could not confirm its session before the turn began"
UNCONFIRMED_S = 1.0

LEDGER_RETRY_S = 1.0
LEDGER_TRIES = 30
"""A completion is retried for about half a minute before the turn's mail goes back."""

log = structlog.get_logger(__name__)


class Services(Struct, frozen=True):
    """What every seat's dispatch shares on one node."""

    company: str
    node_id: str
    queue: Publisher
    ledger: Ledger
    followers: Followers
    turns: Turns
    clock: Clock


class Dispatch:
    """Of one seat. `run` is the handler of its inbox."""

    def __init__(self, seat: Seat, handler: Handler, timeout_s: float, services: Services) -> None:
        self._seat = seat
        self._handler = handler
        self._timeout_s = timeout_s
        self._services = services

    async def run(self, partition: Partition) -> Outcome | Partly:
        letters = without_duplicates(partition.letters)
        worked = await self._worked(letters)
        if rest := tuple(letter for letter in letters if letter.id not in worked):
            async with self._services.turns.slot():
                outcome = (
                    await self._turn(rest, partition.fence)
                    if self._may_start(partition)
                    else Defer(UNCONFIRMED, retry_after_s=UNCONFIRMED_S)
                )
            return Partly(tuple(worked), outcome) if worked else outcome
        return Ack()

    def _may_start(self, partition: Partition) -> bool:
        """Asked again: the ledger and the wait for a slot took their time."""
        right = partition.right
        return right is None or right.may_start(self._services.clock.monotonic())

    # -- before the turn --------------------------------------------------------------

    async def _worked(self, letters: tuple[Letter, ...]) -> dict[str, Worked]:
        """What a finished turn has worked is done, whatever becomes of the rest; said for
        each."""
        ids = [letter.id for letter in letters]
        worked = await self._services.ledger.worked(self._seat.handle, ids)
        for letter in letters:
            if row := worked.get(letter.id):
                await self._skipped(event_of(letter), row)
        return worked

    async def _skipped(self, trigger: Event, row: Worked) -> None:
        body = TurnTriggerSkipped(
            agent_role=self._seat.handle,
            trigger_id=trigger.id,
            reason=ALREADY_WORKED,
            worked_by=row.turn_id,
            completed_at=row.completed_at,
        )
        event = Event.new(
            types.TURN_TRIGGER_SKIPPED,
            id=derived_id(trigger.id, self._seat.handle, "skipped", row.turn_id),
            at=self._services.clock.now(),
            trace=trigger.trace.child(),
            body=body,
        )
        await self._services.queue.record(event)

    # -- the turn ---------------------------------------------------------------------

    async def _turn(self, letters: tuple[Letter, ...], fence: Fence | None) -> Outcome:
        clock, turns = self._services.clock, self._services.turns
        trace = event_of(letters[0]).trace.child()
        started = clock.now()
        turn = build_turn(
            letters,
            seat=self._seat,
            company=self._services.company,
            trace=trace,
            deadline=started + timedelta(seconds=self._timeout_s),
        )
        turns.started(RunningTurn(turn.turn_id, self._seat.handle, letters[0].key, started))
        try:
            await self._record(types.AGENT_TURN_STARTED, trace, self._started(turn, letters))
            reached("before_turn")
            outcome = await self._handled(turn)
            reached("after_effect")
            if isinstance(outcome, Ack):
                outcome = await self._completed(turn, outcome, fence)
        except asyncio.CancelledError:
            cut = Defer(reason="the node stopped before the turn ended")
            self._services.queue.record_soon(self._completion(turn, trace, cut))
            raise
        finally:
            turns.ended(turn.turn_id, clock.now())
        completion = self._completion(turn, trace, outcome)
        try:
            await self._services.queue.record(completion)
        except asyncio.CancelledError:
            self._services.queue.record_soon(completion)  # under its id: stored once
            raise
        await self._reflect(turn, trace, outcome)
        return outcome

    async def _handled(self, turn: Turn) -> Outcome:
        """The handler's outcome, in text that the record can carry; whatever it raises is a
        failure of the turn."""
        try:
            return outcome_of(await self._handler(turn))
        except Exception as error:
            log.exception("handler_raised", seat=self._seat.handle, turn=turn.turn_id)
            return raised(error)

    async def _completed(self, turn: Turn, outcome: Ack, fence: Fence | None) -> Outcome:
        """Finished means recorded: without its row in the ledger a turn's mail goes back. Raises
        Fenced where the seat is somebody else's."""
        ids = [event.id for event in turn.events]
        for _ in range(LEDGER_TRIES):
            reached("before_complete")
            try:
                await self._services.ledger.record(
                    self._seat.handle,
                    ids,
                    turn_id=turn.turn_id,
                    node=self._services.node_id,
                    at=self._services.clock.now(),
                    fence=fence,
                )
            except Fenced:
                log.warning("completion_fenced", seat=self._seat.handle, turn=turn.turn_id)
                raise
            except StoreUnavailable as error:
                log.warning("ledger_unwritable", turn=turn.turn_id, error=str(error))
                await asyncio.sleep(LEDGER_RETRY_S)
                continue
            reached("after_complete_before_ack")
            await self._follow(turn)
            return outcome
        return Defer(reason="the ledger did not say whether it recorded the turn")

    async def _follow(self, turn: Turn) -> None:
        """Who worked a conversation is in it. Unwritten, it costs a later wake, not this one."""
        identity = turn.conversation.conversation_identity
        seats = [self._seat.handle]
        try:
            at = self._services.clock.now()
            await self._services.followers.joined(identity, seats, at=at)
        except StoreUnavailable as error:
            log.warning("follower_not_recorded", seat=self._seat.handle, error=str(error))

    # -- what is recorded -------------------------------------------------------------

    def _started(self, turn: Turn, letters: tuple[Letter, ...]) -> AgentTurnStarted:
        return AgentTurnStarted(
            turn_id=turn.turn_id,
            agent_id=self._seat.agent_id,
            agent_role=self._seat.handle,
            triggers=tuple(letter.id for letter in letters),
            conversation_key=turn.conversation.conversation_identity,
            attempt=turn.attempt,
        )

    def _completion(self, turn: Turn, trace: Trace, outcome: Outcome) -> Event:
        started = turn.deadline and turn.deadline - timedelta(seconds=self._timeout_s)
        now = self._services.clock.now()
        body = AgentTurnCompleted(
            turn_id=turn.turn_id,
            agent_id=self._seat.agent_id,
            agent_role=self._seat.handle,
            triggers=tuple(event.id for event in turn.events),
            conversation_key=turn.conversation.conversation_identity,
            outcome=type(outcome).__name__.lower(),
            answer=outcome.answer if isinstance(outcome, Ack) else None,
            reason="" if isinstance(outcome, Ack) else outcome.reason,
            failed=isinstance(outcome, Nak),
            duration_s=(now - started).total_seconds() if started else 0.0,
        )
        return Event.new(types.AGENT_TURN_COMPLETED, at=now, trace=trace.child(), body=body)

    async def _reflect(self, turn: Turn, trace: Trace, outcome: Outcome) -> None:
        """Put a finished turn before reflection, on the node that holds the seat."""
        if not isinstance(outcome, Ack):
            return
        body = {"turn": turn, "answer": outcome.answer}
        event = Event.new(
            types.TURN_COMPLETED, at=self._services.clock.now(), trace=trace.child(), body=body
        )
        try:
            topic = topics.reflect(self._seat.handle)
            await self._services.queue.publish(topic, event, within_s=10.0)
        except (BrokerError, CrewletError) as error:
            log.error("turn_not_reflected", turn=turn.turn_id, error=str(error))

    async def _record(self, event_type: str, trace: Trace, body: Struct) -> None:
        at = self._services.clock.now()
        await self._services.queue.record(Event.new(event_type, at=at, trace=trace, body=body))


def without_duplicates(letters: tuple[Letter, ...]) -> tuple[Letter, ...]:
    """At least once means that one event may lie here twice; it is one constituent."""
    first: dict[str, Letter] = {}
    for letter in letters:
        first.setdefault(letter.id, letter)
    return tuple(first.values())
