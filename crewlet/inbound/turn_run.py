"""One turn: it starts, runs, and - if it finished - is recorded before its mail is acknowledged.

The record carries the seat's fence: where the seat is somebody else's by then, it is refused, and
nothing more is done in the turn's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec import UNSET, Struct, field

from actors.delivery import Ack, Defer, Nak
from actors.delivery import Outcome as Settled
from actors.failpoints import reached
from actors.ports import BrokerError
from crewlet import topics
from crewlet.errors import CrewletError, StoreUnavailable, TurnStopped
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.interruptions import AgentTurnStopped
from crewlet.events.triggers import Guard
from crewlet.events.types import AgentTurnCompleted, AgentTurnStarted, end_in_words
from crewlet.handlers.outcomes import TimedOut, ended_with, nak, outcome_of, raised
from crewlet.inbound.build_turn import build_turn, is_scheduled, new_turn_id, timeout_of
from crewlet.inbound.completions import Completions, Finishing
from crewlet.inbound.desk import TurnDesk, asker_of
from crewlet.inbound.followers import joined_by_router
from crewlet.inbound.given_up import GivenUp
from crewlet.inbound.letters import event_of
from crewlet.inbound.running import RunningTurn
from crewlet.inbound.services import Services
from crewlet.inbound.suspending import Suspending
from crewlet.inbound.wakers import waker_of
from crewlet.inbound.work import Work
from crewlet.runs.notices import resumed_turn
from crewlet.turn import Abandon, Answered, Outcome, Suspend, Turn, Unavailable

FINISHED: Final = "ack"
STOPPED: Final = "stopped"
ABANDONED: Final = "abandon"
SUSPENDED: Final = "suspend"
UNAVAILABLE: Final = "unavailable"

CHOKES: Final = "the provider worked for others and fails for this message alone"
UNDECIDED: Final = "the ledger did not say whether it recorded the turn"

log = structlog.get_logger(__name__)


class Attempt(Struct, frozen=True):
    """A turn that runs: what it was made of, and when it began. `notes` are what its end has to
    say beside the outcome."""

    turn: Turn
    work: Work
    trace: Trace
    started: datetime
    desk: TurnDesk
    notes: list[str] = field(default_factory=list)

    @property
    def handle(self) -> str:
        return self.work.seat.handle


class Stopped(Struct, frozen=True):
    """A person ended the turn: no outcome of its handler's."""

    by: str


class Ending(Struct, frozen=True):
    """What becomes of the turn's mail, and the word for it in the record. `run_id` is the run that
    the turn goes on as, if it is not over."""

    settled: Settled
    word: str
    run_id: str = ""

    @property
    def stopped(self) -> bool:
        return self.word == STOPPED


class TurnRun:
    """Runs turns, for every seat of the node."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._queue = services.queue
        self._clock = services.clock
        self._completions = Completions(services)
        self._given_up = GivenUp(services)
        self._suspending = Suspending(services)

    async def run(self, work: Work) -> Settled:
        turn_id = _resumed(work) or new_turn_id()
        trace = event_of(work.letters[0]).trace.child()
        try:
            attempt = self._begun(work, turn_id, trace)
            ending = await self._ended(attempt)
        except Exception as error:
            if _is_outage(error):  # or Fenced: the mail is not to blame
                raise
            return await self._panicked(work, turn_id, trace, error)
        await self._tell(attempt, ending)
        return ending.settled

    async def _ended(self, attempt: Attempt) -> Ending:
        """From its start, which is on record before it works, to its end."""
        turns, turn = self._services.turns, attempt.turn
        key = attempt.work.letters[0].key
        running = RunningTurn(
            turn.turn_id,
            attempt.handle,
            key,
            attempt.started,
            woken_by=waker_of(turn, self._services.company()),
        )
        turns.started(running, attempt.desk)
        try:
            await self._record(types.AGENT_TURN_STARTED, attempt.trace, _started(attempt, running))
            reached("before_turn")
            outcome = await self._handled(attempt)
            reached("after_effect")
            ending = await self._end(attempt, outcome)
        except asyncio.CancelledError:
            cut = _as_said(Defer(reason="the node stopped before the turn ended"))
            self._queue.record_soon(self._completion(attempt, cut))
            raise
        finally:
            attempt.desk.close()
            turns.ended(turn.turn_id, self._clock.now())
        return ending

    def _begun(self, work: Work, turn_id: str, trace: Trace) -> Attempt:
        assert work.trigger is not None, "its letters have become one trigger"
        started = self._clock.now()
        timeout_s = timeout_of(work.letters, work.timeout_s)
        turn = build_turn(
            work.letters,
            work.trigger,
            seat=work.seat,
            company=self._services.company().name,
            trace=trace,
            turn_id=turn_id,
            deadline=started + timedelta(seconds=timeout_s),
            timeout_s=timeout_s,
        )
        services = self._services
        desk = TurnDesk(asker_of(turn, trace), services.asks, services.turns, services.data)
        return Attempt(turn.at(desk), work, trace, started, desk)

    async def _handled(self, attempt: Attempt) -> Outcome | Stopped:
        """The handler's outcome, in text that the record can carry; whatever it raises is a
        failure of the turn, unless a person wanted it to stop."""
        handler = attempt.work.handler
        assert handler is not None, "a seat without a handler is held"
        try:
            return outcome_of(await handler(attempt.turn))
        except TurnStopped as error:
            by = self._services.turns.stopped_by(attempt.turn.turn_id)
            return Stopped(by) if by else ended_with(error)
        except Exception as error:
            log.exception("handler_raised", seat=attempt.handle, turn=attempt.turn.turn_id)
            return ended_with(error)

    # -- how it ends ------------------------------------------------------------------

    async def _end(self, attempt: Attempt, outcome: Outcome | Stopped) -> Ending:
        """What becomes of the turn's mail, once all that the outcome asks for is done."""
        match outcome:
            case Unavailable():
                return await self._unavailable(attempt, outcome)
            case Defer():
                return _as_said(outcome)
            case Stopped():
                return await self._stopped(attempt, outcome)
        await self._got_through(attempt, outcome)
        match outcome:
            case Ack():
                return _as_said(await self._complete(attempt, outcome))
            case Answered():
                told = Ack(outcome.answer)
                return _as_said(await self._complete(attempt, told, outcome.shown))
            case Suspend():
                return await self._suspend(attempt, outcome.run_id)
            case Abandon():
                return await self._abandon(attempt, outcome.reason)
            case TimedOut():
                return await self._timed_out(attempt, outcome)
            case Nak():
                return _as_said(outcome)
        raise AssertionError(f"{outcome} is no outcome")

    async def _unavailable(self, attempt: Attempt, outcome: Unavailable) -> Ending:
        """Unless the mail is to blame, the seat is held, and the mail goes back to its head. The
        deferral lasts as long as the hold, in case the seat refused that."""
        handler, outages = attempt.work.handler, self._services.outages
        assert handler is not None
        blame = outages.blame(attempt.handle, handler, attempt.work.letters[0].id)
        if blame == "message":
            await outages.over(attempt.handle)
            return _as_said(nak(f"{CHOKES}: {outcome.reason}"))
        outage = await outages.found(
            attempt.work.seat,
            handler,
            outcome,
            turn_id=attempt.turn.turn_id,
            trace=attempt.trace,
        )
        if blame == "unclear":  # behind what else waits, which is tried first then
            return Ending(Nak(outcome.reason), UNAVAILABLE)
        return Ending(Defer(outcome.reason, retry_after_s=outage.wait_s), UNAVAILABLE)

    async def _got_through(self, attempt: Attempt, outcome: Outcome) -> None:
        """The outage is over, if there was one. A failure is no proof of it for other seats."""
        handler, letters = attempt.work.handler, attempt.work.letters
        await self._services.outages.over(attempt.handle)
        if handler is not None and not isinstance(outcome, Nak):
            ids = tuple(letter.id for letter in letters)
            self._services.outages.worked(attempt.handle, handler, ids)

    async def _timed_out(self, attempt: Attempt, outcome: TimedOut) -> Ending:
        """A failure like any other; that it happened by the clock is said of a schedule's turn,
        since there nobody waits for an answer who would notice."""
        work, turn_id = attempt.work, attempt.turn.turn_id
        if is_scheduled(work.letters):
            await self._given_up.breach(work, turn_id, "scheduled_timeout", outcome.reason)
        return _as_said(Nak(outcome.reason))

    async def _stopped(self, attempt: Attempt, stopped: Stopped) -> Ending:
        """A person wanted an end, so it is one: the mail is worked, and not tried again."""
        told = Ack(answer=f"{stopped.by} stopped the turn before it had an answer")
        settled = await self._complete(attempt, told)  # whoever waits for the answer is told so
        if not isinstance(settled, Ack):
            return _as_said(settled)
        turn, seat = attempt.turn, attempt.work.seat
        body = AgentTurnStopped(
            turn_id=turn.turn_id,
            agent_id=seat.agent_id,
            agent_role=seat.handle,
            triggers=tuple(event.id for event in turn.events),
            stopped_by=stopped.by,
        )
        await self._record(types.AGENT_TURN_STOPPED, attempt.trace.child(), body)
        return Ending(Ack(), STOPPED)

    async def _complete(self, attempt: Attempt, outcome: Ack, shown: Sequence[str] = ()) -> Settled:
        """Finished means recorded: without its row in the ledger a turn's mail goes back. With
        it stand the messages that the turn answered along with its trigger. Raises Fenced where
        the seat is somebody else's."""
        finished = Finishing(attempt.work, attempt.turn.turn_id, attempt.trace, outcome.answer)
        notes = await self._completions.record(finished, shown)
        if notes is None:
            return Defer(reason=UNDECIDED)
        reached("after_complete_before_ack")
        attempt.notes[:] = [*notes, *await self._completions.send(finished)]
        await self._follow(attempt)
        return outcome

    async def _suspend(self, attempt: Attempt, run_id: str) -> Ending:
        """What the turn owes to others it owes still: it goes on when its run is over."""
        settled = await self._suspending.suspend(attempt.work, attempt.turn, run_id)
        if not isinstance(settled, Ack):
            return _as_said(settled)
        await self._follow(attempt)  # or nobody would bring it the answer to its question
        return Ending(settled, SUSPENDED, run_id)

    async def _abandon(self, attempt: Attempt, reason: str) -> Ending:
        turn_id = attempt.turn.turn_id
        if not await self._give_up(attempt.work, turn_id, attempt.trace, "abandoned", reason):
            return _as_said(Defer(reason=UNDECIDED))
        attempt.notes.append(reason)
        return Ending(Ack(), ABANDONED)

    async def _panicked(self, work: Work, turn_id: str, trace: Trace, error: Exception) -> Settled:
        """The frame broke, and not the handler. What it did until then nobody can say, and it
        would break again: the mail is not tried another time."""
        log.exception("turn_frame_broke", seat=work.seat.handle, turn=turn_id)
        reason = f"the frame of the turn broke: {raised(error).reason}"
        done = await self._give_up(work, turn_id, trace, "panic", reason)
        return Ack() if done else Defer(reason=UNDECIDED)

    async def _give_up(
        self, work: Work, turn_id: str, trace: Trace, guard: Guard, reason: str
    ) -> bool:
        """Its trigger is worked as far as it ever will be: whoever waits for it is told, and a
        person can find it."""
        finished = Finishing(work, turn_id, trace, f"given up: {reason}")
        if await self._completions.record(finished) is None:
            return False
        await self._completions.send(finished)
        await self._given_up.announce(work, turn_id, guard, reason)
        return True

    async def _follow(self, attempt: Attempt) -> None:
        """Who worked a conversation is in it. Unwritten, it costs a later wake, not this one."""
        turn, handle, now = attempt.turn, attempt.handle, self._clock.now()
        if joined_by_router(turn.events, now):
            return
        identity = turn.conversation.conversation_identity
        try:
            await self._services.followers.joined(identity, [handle], at=now)
        except StoreUnavailable as error:
            log.warning("follower_not_recorded", seat=handle, error=str(error))

    # -- what is recorded -------------------------------------------------------------

    def _completion(self, attempt: Attempt, ending: Ending) -> Event:
        now, seat, turn = self._clock.now(), attempt.work.seat, attempt.turn
        outcome = ending.settled
        reason = _noted(attempt) if isinstance(outcome, Ack) else outcome.reason
        body = AgentTurnCompleted(
            turn_id=turn.turn_id,
            agent_id=seat.agent_id,
            agent_role=seat.handle,
            triggers=tuple(event.id for event in turn.events),
            conversation_key=turn.conversation.conversation_identity,
            outcome=ending.word,
            answer=outcome.answer if isinstance(outcome, Ack) else None,
            reason=reason,
            failed=isinstance(outcome, Nak) or ending.word == ABANDONED,
            suspended=ending.run_id or None,
            stopped=ending.stopped,
            duration_s=(now - attempt.started).total_seconds(),
            work_item=turn.work_item or UNSET,
            summary=end_in_words(seat.handle, ending.word, reason),
        )
        return Event.new(types.AGENT_TURN_COMPLETED, at=now, trace=attempt.trace.child(), body=body)

    async def _tell(self, attempt: Attempt, ending: Ending) -> None:
        """What is said of an end, sent together: neither word waits for the other."""
        completion = self._completion(attempt, ending)
        self._services.turns.fared(attempt.handle, ending.settled)
        telling = [self._queue.record(completion)]
        if ending.word == FINISHED and isinstance(ending.settled, Ack):
            telling.append(self._reflect(attempt, ending.settled))
        try:
            await asyncio.gather(*telling)
        except asyncio.CancelledError:
            self._queue.record_soon(completion)  # under its id: stored once
            raise

    async def _reflect(self, attempt: Attempt, outcome: Ack) -> None:
        """Put a finished turn before reflection, on the node that holds the seat."""
        turn, now = attempt.turn, self._clock.now()
        body = {"turn": turn, "answer": outcome.answer}
        event = Event.new(types.TURN_COMPLETED, at=now, trace=attempt.trace.child(), body=body)
        try:
            await self._queue.publish(topics.reflect(attempt.handle), event, within_s=10.0)
        except (BrokerError, CrewletError) as error:
            log.error("turn_not_reflected", turn=turn.turn_id, error=str(error))

    async def _record(self, event_type: str, trace: Trace, body: Struct) -> None:
        at = self._clock.now()
        await self._queue.record(Event.new(event_type, at=at, trace=trace, body=body))


def _is_outage(error: Exception) -> bool:
    """Whether somebody whom we depend on did not answer: the broker, the store, a seat's actor."""
    if isinstance(error, CrewletError):
        return error.blame == "peer"
    return isinstance(error, BrokerError | TimeoutError)


def _resumed(work: Work) -> str:
    """The turn that a run has suspended and whose result is here; empty for a new turn."""
    return next(filter(None, (resumed_turn(event_of(letter)) for letter in work.letters)), "")


def _noted(attempt: Attempt) -> str:
    return "; ".join(dict.fromkeys(note for note in attempt.notes if note))


def _as_said(settled: Settled) -> Ending:
    """The outcome that goes by its own name."""
    return Ending(settled, type(settled).__name__.lower())


def _started(attempt: Attempt, running: RunningTurn) -> AgentTurnStarted:
    turn, seat = attempt.turn, attempt.work.seat
    return AgentTurnStarted(
        turn_id=turn.turn_id,
        agent_id=seat.agent_id,
        agent_role=seat.handle,
        triggers=tuple(event.id for event in turn.events),
        conversation_key=turn.conversation.conversation_identity,
        attempt=turn.attempt,
        woken_by=running.woken_by,
        woken_as=turn.events[-1].event_type,
        work_item=turn.work_item or UNSET,
        work_item_basis=turn.work_item_basis or UNSET,
        resumed=turn.turn_id == _resumed(attempt.work),
    )
