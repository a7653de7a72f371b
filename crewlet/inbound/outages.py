"""Keeps the clock and the hold of each outage on this node (crewlet.inbound.outage has the rules).

A seat whose handler cannot work is held under the name `provider`, and asks again by itself.
What is known of an outage stays on the node that found it: a seat that moves starts freely
elsewhere, and its first turn there is the probe.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from msgspec import Struct

from actors.ports import Clock
from crewlet.company import Company, Seat
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.events.interruptions import LlmUnavailable
from crewlet.handlers.handler import Handler, probe_of, provider_of
from crewlet.handlers.outcomes import raised, reason_of
from crewlet.inbound.ids import derived_id
from crewlet.inbound.outage import Outage, draw_of, failed, probed
from crewlet.inbound.suspicion import Blame, Suspicions
from crewlet.inbound.work import Brakes
from crewlet.queue import Publisher
from crewlet.turn import Unavailable

PROVIDER: Final = "provider"
"""The hold of a seat whose handler waits for something outside."""

PROBE_WITHIN_S: Final = 60.0
"""A probe that takes longer than this has found that nobody answers."""

AFTER_PROBE_S: Final = 1.0
"""From a probe that found it well to the turn: a provider that is away is not asked twice in one
second, even where its probe does not see that."""

AGAIN_S: Final = 1.0
"""After a seat that did not answer when its hold was to be lifted."""

log = structlog.get_logger(__name__)


class _Standing(Struct):
    """`handler` is the one that could not work. Once `lifted`, the next delivery is the probe."""

    outage: Outage
    handler: Handler
    lifted: bool = False
    waiting: asyncio.Task[None] | None = None

    def end(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()


class Outages:
    """Of the seats of one node."""

    def __init__(self, brakes: Brakes, queue: Publisher, clock: Clock) -> None:
        self._brakes = brakes
        self._queue = queue
        self._clock = clock
        self._standing: dict[str, _Standing] = {}
        self._lifting: set[asyncio.Task[None]] = set()
        self._suspicions = Suspicions()

    def holding(self, handle: str) -> Outage | None:
        """The outage that the seat is held for; None where there is none, or where it is over
        as far as anybody knows."""
        standing = self._standing.get(handle)
        return None if standing is None or standing.lifted else standing.outage

    def blame(self, handle: str, handler: Handler, message: str) -> Blame:
        """Who is to blame that the handler could not work this message."""
        now = self._clock.monotonic()
        blame = self._suspicions.failed(handle, provider_of(handler), message, now)
        if blame != "provider":
            log.warning("message_under_suspicion", seat=handle, message=message, blame=blame)
        return blame

    def worked(self, handle: str, handler: Handler, messages: tuple[str, ...]) -> None:
        """The handler did work these: what it needs is there, for others too."""
        now = self._clock.monotonic()
        self._suspicions.worked(handle, provider_of(handler), messages, now)

    async def found(
        self, seat: Seat, handler: Handler, said: Unavailable, *, turn_id: str, trace: Trace
    ) -> Outage:
        """A turn of the seat could not be worked: hold it, and ask again when it is time. Where
        the hold is refused, the caller's deferral for `wait_s` is all the brake there is."""
        handle = seat.handle
        before = self._standing.pop(handle, None)
        known = None if before is None else before.outage
        if before is not None:
            before.end()
        outage = failed(
            known,
            at=self._clock.now(),
            reason=said.reason,
            retry_after_s=said.retry_after_s,
            draw=draw_of(handle, known),
        )
        if outage.spent == 1:
            self._record(seat, outage, turn_id, trace)
        log.warning("provider_unavailable", seat=handle, reason=said.reason, next=outage.next_at)
        standing = self._standing[handle] = _Standing(outage, handler)
        if await self._was_held(handle):
            standing.waiting = asyncio.ensure_future(self._wait(handle, standing))
        else:
            standing.lifted = True
        return outage

    async def _was_held(self, handle: str) -> bool:
        try:
            return await self._brakes.hold(handle, PROVIDER)
        except TimeoutError:
            log.warning("hold_refused", seat=handle, hold=PROVIDER)
            return False

    async def over(self, handle: str) -> None:
        """A turn of the seat got through: what it needs is there."""
        standing = self._standing.pop(handle, None)
        if standing is None:
            return
        standing.end()
        lasted_s = (self._clock.now() - standing.outage.since).total_seconds()
        log.info("provider_available", seat=handle, after_s=lasted_s)
        if not standing.lifted:  # a person let the seat try before it was time
            await self._lift(handle)

    def try_now(self, handle: str) -> None:
        """A person lifts the hold: the next delivery is the probe."""
        standing = self._standing.get(handle)
        if standing is not None:
            standing.end()
            standing.lifted = True

    def forget(self, handle: str) -> None:
        """The seat comes anew, or its handler does: it starts freely."""
        self._suspicions.forget(handle)
        self._end(handle)

    def _end(self, handle: str) -> None:
        standing = self._standing.pop(handle, None)
        if standing is not None:
            standing.end()

    async def revised(self, _: Company) -> None:
        """The company has changed: each handler may be another one, which starts freely. A seat
        that is slow to hear of it holds up nobody."""
        self._suspicions.clear()
        for handle in [handle for handle in self._standing if self.holding(handle) is not None]:
            self.forget(handle)
            lifting = asyncio.ensure_future(self._lift(handle))
            self._lifting.add(lifting)
            lifting.add_done_callback(self._lifting.discard)

    async def stop(self) -> None:
        """Nobody asks again."""
        waiting = [each.waiting for each in self._standing.values() if each.waiting is not None]
        waiting += self._lifting
        for task in waiting:
            task.cancel()
        self._standing.clear()
        await asyncio.gather(*waiting, return_exceptions=True)

    # -- while it lasts ---------------------------------------------------------------

    async def _wait(self, handle: str, standing: _Standing) -> None:
        while True:
            await asyncio.sleep(standing.outage.wait_s)
            said = await _asked(standing.handler)
            if said is None:
                if probe_of(standing.handler) is not None:
                    await asyncio.sleep(AFTER_PROBE_S)
                standing.lifted = True
                await self._lift(handle)
                return
            standing.outage = probed(
                standing.outage,
                at=self._clock.now(),
                reason=reason_of(said.reason),
                retry_after_s=said.retry_after_s,
                draw=draw_of(handle, standing.outage),
            )
            if not await self._is_held(handle):
                self._standing.pop(handle, None)
                return

    async def _lift(self, handle: str) -> None:
        while True:
            try:
                if not await self._brakes.lift(handle, PROVIDER):
                    self._standing.pop(handle, None)  # it has moved on, and so has its outage
                return
            except TimeoutError:
                await asyncio.sleep(AGAIN_S)

    async def _is_held(self, handle: str) -> bool:
        """Hold it, also where somebody lifted that; False where the seat is not here any more."""
        try:
            return await self._brakes.hold(handle, PROVIDER)
        except TimeoutError:
            return True

    def _record(self, seat: Seat, outage: Outage, turn_id: str, trace: Trace) -> None:
        body = LlmUnavailable(
            turn_id=turn_id,
            agent_id=seat.agent_id,
            agent_role=seat.handle,
            reason=outage.reason,
            next_at=outage.next_at,
        )
        event = Event.new(
            types.LLM_UNAVAILABLE,
            id=derived_id(turn_id, types.LLM_UNAVAILABLE),
            at=outage.at,
            trace=trace.child(),
            body=body,
        )
        self._queue.record_soon(event)


async def _asked(handler: Handler) -> Unavailable | None:
    """What the handler's own probe says; None where it has none, so that a delivery is one."""
    probe = probe_of(handler)
    if probe is None:
        return None
    try:
        async with asyncio.timeout(PROBE_WITHIN_S):
            return await probe()
    except TimeoutError:
        return Unavailable(f"its probe did not answer within {PROBE_WITHIN_S:.0f} s")
    except Exception as error:
        return Unavailable(f"its probe failed: {raised(error).reason}")
