"""Verbs that look inside a node: its actors, turns, consumers, what is in flight, what waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from actors.admin import Caller, Refused
from actors.machines import signals
from actors.messages import BoxState
from actors.node import INBOUND, ROUTER
from actors.seat import INBOX
from actors.system import Snapshot
from crewlet import topics
from crewlet.broker.port import Waiting
from crewlet.errors import CorruptEvent
from crewlet.events import Event, decode
from crewlet.inbound.outages import PROVIDER
from crewlet.node.seats import box_state, brakes_of
from crewlet.node.verbs.lookup import agent_seat, box_of, consumer
from crewlet.node.verbs.operation import AnyOperation, Nothing, Operation, Rows, the_handle
from crewlet.node.verbs.seat import LIFTED_BY, check_reason
from crewlet.node.view import NodeView

MOST: Final = 100

Command = Literal["describe", "quiesce", "unquiesce", "hold", "lift"]
"""What a consumer may be told by hand: those of its machine's inputs that can be undone."""


class Peek(Struct, frozen=True, forbid_unknown_fields=True):
    """`whole`: with the events themselves."""

    handle: str
    most: int = 10
    whole: bool = False


class Tell(Struct, frozen=True, forbid_unknown_fields=True):
    """`consumer` is a seat, whose node is asked, or the router of the node that is asked."""

    consumer: str
    command: Command
    box: str = ""
    reason: str = "operator"

    @property
    def handle(self) -> str:
        """Whom it is about, as other verbs name it."""
        return self.consumer


class PeekRow(Struct, frozen=True, kw_only=True):
    """One message that waits. What its event says is empty where it is none."""

    position: int
    waits_s: float
    handed_out: bool
    type: str = ""
    event_id: str = ""
    source: str = ""
    summary: str = ""
    size: int = 0


class InsideVerbs:
    """One coroutine a verb."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        return {
            "tree": Operation(Nothing, self.tree),
            "ps": Operation(Nothing, self.turns),
            "consumer.ls": Operation(Nothing, self.consumers),
            "inflight": Operation(Nothing, self.in_flight),
            "inbox.peek": Operation(Peek, self.peek),
            "tell": Operation(Tell, self.tell, target=the_handle, where="owner"),
        }

    async def tree(self, _: Nothing, caller: Caller) -> Rows:
        """Parents before their children, the oldest first."""
        for depth, actor in _walk(self._node.runtime.tree(), 0):
            yield {
                "name": actor.name,
                "level": depth,
                "kind": actor.kind,
                "state": actor.state,
                "depth": actor.depth,
                "restarts": actor.restarts,
                "effects": actor.effects,
                "timers": actor.timers,
            }

    async def turns(self, _: Nothing, caller: Caller) -> Rows:
        """The oldest first, then what waits for a slot to become one."""
        now, running = self._node.clock.now(), self._node.turns.all_running()
        for turn in sorted(running, key=lambda turn: turn.started_at):
            state = "stuck" if turn.overdue else "running"
            row = msgspec.structs.asdict(turn)
            yield {**row, "state": state, "for_s": _since(now, turn.started_at)}
        seats = {turn.seat for turn in running}
        lines = await self._node.runtime.in_flight()
        handed = {topics.handle_of(line.mailbox.topic): None for line in lines}
        for handle in handed:  # who was handed nothing has nothing to wait with
            if handle and handle not in seats and (key := await self._dispatched(handle)):
                yield {"seat": handle, "conversation": key, "state": "waiting for a slot"}

    async def _dispatched(self, handle: str) -> str | None:
        """The conversation that the seat's inbox is at."""
        described = await self._node.runtime.describe(handle)
        boxes = described.boxes if described is not None else ()
        return next((box.running for box in boxes if box.box == INBOX), None)

    async def consumers(self, _: Nothing, caller: Caller) -> Rows:
        for name in [ROUTER, *(seat.handle for seat in self._node.company.agents())]:
            described = await self._node.runtime.describe(name)
            for box in described.boxes if described is not None else ():
                yield self._consumer_row(name, box)

    async def in_flight(self, _: Nothing, caller: Caller) -> Rows:
        """What this node was handed and has not settled, by mailbox and age."""
        lines = await self._node.runtime.in_flight()
        for line in sorted(lines, key=lambda line: (line.mailbox, line.position)):
            yield {
                "handle": topics.handle_of(line.mailbox.topic) or "",
                "topic": line.mailbox.topic,
                "position": line.position,
                "count": line.count,
                "held_s": round(line.held_s, 3),
            }

    async def peek(self, args: Peek, caller: Caller) -> Rows:
        """The mailbox lies at the broker: any node can look into it."""
        agent_seat(self._node, args.handle)
        if not 0 < args.most <= MOST:
            raise Refused("bad_args", f"between 1 and {MOST} messages are shown", exit=2)
        now = self._node.clock.now()
        for message in await self._node.broker.peek(topics.inbox_of(args.handle), args.most):
            yield _peeked(message, now, whole=args.whole)

    async def tell(self, args: Tell, caller: Caller) -> Rows:
        described = await consumer(self._node, args.consumer)
        name = args.box or (INBOUND if args.consumer == ROUTER else INBOX)
        box_of(described, name)
        signal = _signal(args)
        if signal == signals.Lift(PROVIDER):
            self._node.outages.try_now(args.consumer)
        if signal is not None:
            await self._node.runtime.brake(args.consumer, name, signal)
        box = box_of(await consumer(self._node, args.consumer), name)
        yield self._consumer_row(args.consumer, box)

    def _consumer_row(self, name: str, box: BoxState) -> dict[str, Any]:
        turn = self._node.turns.running(name) is not None
        return {
            "consumer": name,
            "box": box.box,
            "state": box_state(box, turn=turn),
            "machine": box.state,
            "attached": box.attached,
            "brakes": brakes_of(box),
            "held": box.held,
            "running": box.running,
        }


def _signal(args: Tell) -> signals.Brake | None:
    match args.command:
        case "describe":
            return None
        case "quiesce":
            return signals.Quiesce()
        case "unquiesce":
            return signals.Unquiesce()
        case "hold":
            check_reason(args.reason)
            return signals.Hold(args.reason)
        case "lift":
            if args.reason in LIFTED_BY:
                raise Refused("not_so", LIFTED_BY[args.reason].format(handle=args.consumer))
            return signals.Lift(args.reason)


def _walk(actors: tuple[Snapshot, ...] | Any, depth: int) -> Iterator[tuple[int, Snapshot]]:
    for actor in actors:
        yield depth, actor
        yield from _walk(actor.children, depth + 1)


def _since(now: datetime, then: datetime) -> float:
    return round((now - then).total_seconds(), 3)


def _peeked(message: Waiting, now: datetime, *, whole: bool) -> dict[str, Any]:
    event = _event(message.body)
    row = PeekRow(
        position=message.position,
        waits_s=max(0.0, _since(now, message.at)),
        handed_out=message.handed_out,
        type=event.type if event else "",
        event_id=event.id if event else "",
        source=event.source if event else "",
        summary=event.summary if event else "no event: it will be dropped as corrupt",
        size=len(message.body),
    )
    shown = msgspec.structs.asdict(row)
    if whole:
        text = message.body.decode("utf-8", "replace")
        shown["event"] = msgspec.Raw(message.body) if event else text
    return shown


def _event(body: bytes) -> Event | None:
    try:
        return decode(body)
    except CorruptEvent:
        return None
