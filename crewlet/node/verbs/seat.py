"""Verbs about one seat, by rising consequence: look, brake, let go, give away, destroy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from actors.admin import Caller, Refused
from actors.machines import signals
from actors.mail import UNCONFIRMED
from actors.messages import BoxState
from actors.seat import CONTROL, INBOX, REFLECT
from crewlet import topics
from crewlet.errors import StoreUnavailable
from crewlet.inbound.outages import PROVIDER
from crewlet.inbound.steps.holds import NO_HANDLER
from crewlet.node.pauses import PAUSED, Pause
from crewlet.node.seats import box_state, brakes_of, seat_row
from crewlet.node.verbs.lookup import agent_seat, box_of, consumer
from crewlet.node.verbs.operation import AnyOperation, Done, OfSeat, Operation, Rows, the_handle
from crewlet.node.view import NodeView
from crewlet.runs.live import RUN

LONGEST_REASON: Final = 60

OF_THE_FLEET: Final = ("seat.pause", "seat.resume")
"""What stands in the store: any node can say it there, also of a seat whose own has died."""

TAKEN_UP: Final = (CONTROL, REFLECT, INBOX)
"""The order in which a seat's boxes are attached: the inbox last."""

LIFTED_BY: Final = {
    PAUSED: "it is a person's pause: `crewlet seat resume {handle}` ends it",
    UNCONFIRMED: "the node cannot confirm its session: it ends when the store answers",
    RUN: "a run holds it: `crewlet run ls {handle}` names it, `crewlet run fail` ends it",
    NO_HANDLER: "nobody works this seat: give it a handler in the file, and `crewlet apply` it",
}
"""Holds that are not lifted by their name: what they stand for has to end."""


class Hold(Struct, frozen=True, forbid_unknown_fields=True):
    handle: str
    reason: str = "operator"


class Rest(Struct, frozen=True, forbid_unknown_fields=True):
    """`stop_running`: the turn that runs ends at its next checkpoint."""

    handle: str
    stop_running: bool = False


class Move(Struct, frozen=True, forbid_unknown_fields=True):
    handle: str
    node: str


class Delete(Struct, frozen=True, forbid_unknown_fields=True):
    """`yes` repeats the handle."""

    handle: str
    yes: str


class SeatVerbs:
    """One coroutine a verb."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        acts: dict[str, tuple[type[Any], Callable[[Any, Caller], Rows]]] = {
            "seat.hold": (Hold, self.hold),
            "seat.release": (Hold, self.release),
            "seat.quiesce": (OfSeat, self.quiesce),
            "seat.unquiesce": (OfSeat, self.unquiesce),
            "seat.detach": (OfSeat, self.detach),
            "seat.attach": (OfSeat, self.attach),
            "seat.pause": (Rest, self.pause),
            "seat.resume": (OfSeat, self.resume),
            "seat.move": (Move, self.move),
            "seat.delete": (Delete, self.delete),
        }
        return {
            "seat.show": Operation(OfSeat, self.show, where="owner", or_here=True),
            **{
                name: Operation(
                    args, run, target=the_handle, where="owner", or_here=name in OF_THE_FLEET
                )
                for name, (args, run) in acts.items()
            },
        }

    async def show(self, args: OfSeat, caller: Caller) -> Rows:
        seat = agent_seat(self._node, args.handle)
        described = await self._node.runtime.describe(args.handle)
        boxes = {} if described is None else {box.box: box for box in described.boxes}
        pause, row = await asyncio.gather(
            self._paused(args.handle), seat_row(self._node, seat)
        )  # together: where the broker is away, each takes the time to find out
        turn = self._node.turns.running(args.handle) is not None
        owner = row["owner"] or self._node.node_id
        silent = {} if owner == self._node.node_id else {"state": f"on {owner}, which is silent"}
        yield {
            **row,
            **silent,
            "goal": seat.goal,
            "running": boxes[INBOX].running if INBOX in boxes else None,
            "holds": boxes[INBOX].holds if INBOX in boxes else (),
            "paused_by": pause.by if pause else None,
            "paused_at": pause.at if pause else None,
            **{name: box_state(box, turn=turn) for name, box in boxes.items()},
        }

    async def _paused(self, handle: str) -> Pause | None:
        """None also where the store does not answer."""
        with contextlib.suppress(StoreUnavailable):
            return await self._node.pauses.of(handle)
        return None

    # -- brakes -----------------------------------------------------------------------

    async def hold(self, args: Hold, caller: Caller) -> Rows:
        check_reason(args.reason)
        before = await self._brake(args.handle, signals.Hold(args.reason))
        note = f"takes nothing new; `crewlet seat release {args.handle} {_quoted(args.reason)}`"
        yield self._done(args.handle, args.reason not in before.holds, note)

    async def release(self, args: Hold, caller: Caller) -> Rows:
        check_reason(args.reason)
        if args.reason in LIFTED_BY:
            raise Refused("not_so", LIFTED_BY[args.reason].format(handle=args.handle))
        if args.reason == PROVIDER:  # a person wants to know now: the next turn is the probe
            self._node.outages.try_now(args.handle)
        before = await self._brake(args.handle, signals.Lift(args.reason))
        note = await self._left(args.handle)
        if args.reason not in before.holds:
            note = f"it was not held by that; {note}"
        yield self._done(args.handle, args.reason in before.holds, note)

    async def quiesce(self, args: OfSeat, caller: Caller) -> Rows:
        agent_seat(self._node, args.handle)
        if not box_of(await consumer(self._node, args.handle), INBOX).attached:
            raise Refused(
                "not_now",
                f"{args.handle} is detached, and a quiesce would not outlast that: "
                f"`crewlet seat hold {args.handle}` does",
            )
        before = await self._brake(args.handle, signals.Quiesce())
        note = f"takes nothing new; `crewlet seat unquiesce {args.handle}`"
        yield self._done(args.handle, not before.quiesced, note)

    async def unquiesce(self, args: OfSeat, caller: Caller) -> Rows:
        before = await self._brake(args.handle, signals.Unquiesce())
        note = await self._left(args.handle)
        yield self._done(args.handle, before.quiesced or before.deferred, note)

    async def pause(self, args: Rest, caller: Caller) -> Rows:
        """The store first: a successor must know it whatever becomes of this node."""
        node, handle = self._node, args.handle
        agent_seat(node, handle)
        changed = await node.pauses.pause(handle, caller.user, stop_running=args.stop_running)
        await node.runtime.brake(handle, INBOX, signals.Hold(PAUSED))
        stopping = args.stop_running and node.turns.halt(handle, caller.user)
        also = "; its turn ends at its next checkpoint" if stopping else ""
        note = f"takes nothing new, on any node{also}; `crewlet seat resume {handle}`"
        yield self._done(handle, changed, note)

    async def resume(self, args: OfSeat, caller: Caller) -> Rows:
        agent_seat(self._node, args.handle)
        changed = await self._node.pauses.resume(args.handle, caller.user)
        self._node.turns.go_on(args.handle)
        await self._node.runtime.brake(args.handle, INBOX, signals.Lift(PAUSED))
        yield self._done(args.handle, changed, await self._left(args.handle))

    async def _brake(self, handle: str, signal: signals.Brake) -> BoxState:
        """How the inbox stood before."""
        agent_seat(self._node, handle)
        box_of(await consumer(self._node, handle), INBOX)
        before = await self._node.runtime.brake(handle, INBOX, signal)
        if before is None:
            raise Refused(
                "moved", f"{handle} left {self._node.node_id} meanwhile: try again", exit=1
            )
        return before

    async def _left(self, handle: str) -> str:
        """What is in the way of its mail after a brake was lifted: the others still are."""
        described = await self._node.runtime.describe(handle)
        if described is None:
            return "it is not worked here: whoever works it hears of that"
        box = box_of(described, INBOX)
        if not box.attached:
            return f"it is detached: `crewlet seat attach {handle}`"
        brakes = brakes_of(box)
        return f"still {', '.join(brakes)}" if brakes else "mail flows"

    # -- letting go -------------------------------------------------------------------

    async def detach(self, args: OfSeat, caller: Caller) -> Rows:
        agent_seat(self._node, args.handle)
        changed = await self._detach(args.handle)
        note = f"its mail waits for whoever attaches; `crewlet seat attach {args.handle}`"
        yield self._done(args.handle, changed, note)

    async def _detach(self, handle: str) -> bool:
        await consumer(self._node, handle)
        detached = [await self._node.runtime.detach(handle, box) for box in reversed(TAKEN_UP)]
        return any(detached)

    async def attach(self, args: OfSeat, caller: Caller) -> Rows:
        """Make what was deleted, and take up what was let go of."""
        agent_seat(self._node, args.handle)
        node, attached = self._node, []
        described = await consumer(node, args.handle)
        for name in TAKEN_UP:
            if box_of(described, name).attached:
                continue
            consumed = node.consumed(args.handle, name)
            await node.broker.ensure(consumed.mailbox)
            if name == INBOX:  # its holds went with the attachment that they lay over
                for hold in await node.holds_of(args.handle):
                    await node.runtime.brake(args.handle, INBOX, signals.Hold(hold))
            try:
                await node.runtime.attach(args.handle, name, consumed)
            except ValueError as error:
                raise Refused("not_now", str(error)) from None
            attached.append(name)
        note = f"attached: {', '.join(attached)}" if attached else "it was attached already"
        yield self._done(args.handle, bool(attached), note)

    async def move(self, args: Move, caller: Caller) -> Rows:
        """Accepted, not awaited: the caller may be a turn of this very seat."""
        agent_seat(self._node, args.handle)
        changed, note = await self._node.fleet.move(args.handle, args.node)
        yield self._done(args.handle, changed, note)

    async def delete(self, args: Delete, caller: Caller) -> Rows:
        """Its mailboxes, with all that is in them."""
        agent_seat(self._node, args.handle)
        if args.yes != args.handle:
            raise Refused(
                "unconfirmed",
                f"this destroys all mail of {args.handle}: say --yes {args.handle} if you mean it",
                exit=2,
            )
        boxes = [topics.inbox_of, topics.control_of, topics.reflect_of]
        states = {state.mailbox: state for state in await self._node.broker.list(topics.AGENT)}
        await self._detach(args.handle)
        lost, deleted = 0, []
        for mailbox in (box(args.handle) for box in boxes):
            if state := states.get(mailbox):
                lost += state.waiting + state.in_flight
            deleted.append(await self._node.broker.delete(mailbox))
        gone = "1 message is" if lost == 1 else f"{lost} messages are"
        note = f"{gone} gone; `crewlet seat attach {args.handle}` begins anew"
        yield self._done(args.handle, any(deleted), note)

    def _done(self, handle: str, changed: bool, note: str) -> Done:
        return Done(target=handle, node=self._node.node_id, changed=changed, note=note)


def check_reason(reason: str) -> None:
    """Refused for what no line of a table could show."""
    if not 0 < len(reason) <= LONGEST_REASON or not reason.isprintable():
        raise Refused(
            "bad_args", f"a reason is one line of 1 to {LONGEST_REASON} characters", exit=2
        )


def _quoted(text: str) -> str:
    return text if text.isalnum() else f"'{text}'"
