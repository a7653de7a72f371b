"""`why HANDLE`: why is this seat not working? Gathers the facts; the words are in reasons.py."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from actors.admin import Caller
from actors.ports import BrokerError
from actors.seat import INBOX
from crewlet import topics
from crewlet.a2a.channel import Channel
from crewlet.company import Seat
from crewlet.errors import StoreUnavailable
from crewlet.inbound.wakers import Waker
from crewlet.node.fleet import BEHIND
from crewlet.node.pauses import Pause
from crewlet.node.verbs.lookup import agent_seat
from crewlet.node.verbs.operation import AnyOperation, OfSeat, Operation, Rows
from crewlet.node.verbs.reasons import Facts, Reason, reasons, removed
from crewlet.node.view import NodeView


class WhyVerbs:
    """Gathers the facts."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        return {"why": Operation(OfSeat, self.why, where="owner", or_here=True)}

    async def why(self, args: OfSeat, caller: Caller) -> Rows:
        if (gone := await self._gone(args.handle)) is not None:
            yield gone
            return
        for reason in reasons(await self._facts(agent_seat(self._node, args.handle))):
            yield reason

    async def _gone(self, handle: str) -> Reason | None:
        """Of a seat that the company had, and has no more."""
        seat = self._node.company.seat(handle)
        if (seat is not None and seat.is_agent) or not topics.is_handle(handle):
            return None
        try:
            known = await self._node.reconcile.roster.of(handle)
        except StoreUnavailable:
            return None
        return None if known is None else removed(handle, known.record)

    async def _facts(self, seat: Seat) -> Facts:
        node, now = self._node, self._node.clock.now()
        described = await node.runtime.describe(seat.handle)
        boxes = described.boxes if described is not None else ()
        turn = node.turns.running(seat.handle)
        facts = Facts(
            handle=seat.handle,
            node=node.node_id,
            owner=node.fleet.owner_of(seat.handle),
            barred=node.fleet.barred(seat.demand),
            stopping=node.stopping.is_set(),
            draining=node.stopping.is_set() or node.edge.draining,
            behind=node.reconcile.facts().get(BEHIND, ""),
            connected=node.broker.connected,
            box=next((box for box in boxes if box.box == INBOX), None),
            turn=turn,
            failure=node.turns.tally(seat.handle).failure,
            turn_s=(now - turn.started_at).total_seconds() if turn else 0.0,
            running=len(node.turns.all_running()),
            full=node.turns.full,
            outage=node.outages.holding(seat.handle),
            runs=tuple(node.runs.of(seat.handle)),
            waker=self._colleague(seat.handle, now),
        )
        if not node.broker.connected:
            return facts
        try:
            return await self._with_mail(facts)
        except BrokerError:  # its server is there, and what it is a member of does not answer
            return msgspec.structs.replace(facts, connected=False)

    def _colleague(self, handle: str, now: datetime) -> Waker | None:
        waker = self._node.turns.tally(handle).wakes.most(now)
        seat = None if waker is None else self._node.company.seat(waker.who)
        return waker if seat is not None and seat.is_agent else None

    async def _with_mail(self, facts: Facts) -> Facts:
        """What the broker and the store know; nothing of it where they do not answer."""
        node, inbox = self._node, topics.inbox_of(facts.handle)
        states = await node.broker.list(inbox.topic)
        oldest = await node.broker.peek(inbox, 1)
        pause: Pause | None = None
        asked: list[Channel] = []
        with contextlib.suppress(StoreUnavailable):
            pause = await node.pauses.of(facts.handle)
            asked = [one.channel for one in await node.channels.all()]
        held = [line for line in await node.runtime.in_flight() if line.mailbox == inbox]
        age_s = (node.clock.now() - oldest[0].at).total_seconds() if oldest else 0.0
        return msgspec.structs.replace(
            facts,
            mail=next((state for state in states if state.mailbox == inbox), None),
            oldest=oldest[0] if oldest else None,
            oldest_s=max(0.0, age_s),
            oldest_in_hand=any(line.position == one.position for line in held for one in oldest),
            pause=pause,
            in_hand=len(held),
            asked=_waits(asked, facts.handle, node.clock.now()),
        )


def _waits(
    channels: Sequence[Channel], handle: str, now: datetime
) -> tuple[tuple[Channel, float], ...]:
    """The open questions of a seat, the oldest first."""
    waiting = [one for one in channels if one.asker == handle and one.state == "open"]
    waiting.sort(key=lambda one: one.opened_at)
    return tuple((one, max(0.0, (now - one.opened_at).total_seconds())) for one in waiting)
