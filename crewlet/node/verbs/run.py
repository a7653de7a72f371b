"""Verbs about long runs: look, say what became of one, take the answer to its question."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from actors.admin import Caller, Refused
from crewlet.events import Event
from crewlet.node.verbs.lookup import SHOWN, agent_seat
from crewlet.node.verbs.operation import AnyOperation, Done, Operation, Rows, the_handle
from crewlet.node.view import NodeView
from crewlet.runs.live import NoRun
from crewlet.runs.row import Notice, Run, State

NOT_FOUND: Final = "not_found"


class Listing(Struct, frozen=True, forbid_unknown_fields=True):
    """Without a handle: those of every seat."""

    handle: str = ""


class OfRun(Struct, frozen=True, forbid_unknown_fields=True):
    handle: str
    run_id: str


class Saying(Struct, frozen=True, forbid_unknown_fields=True):
    handle: str
    run_id: str
    text: str = ""


class RunRow(Struct, frozen=True, kw_only=True):
    """`since` is when it came to stand so; `text` what it asks, or how it ended."""

    handle: str
    run_id: str
    state: str
    holds: bool
    since: datetime
    text: str = ""


class RunVerbs:
    """One coroutine a verb."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        return {
            "run.ls": Operation(Listing, self.ls),
            "run.show": Operation(OfRun, self.show),
            "run.complete": Operation(Saying, self.complete, target=the_handle, where="owner"),
            "run.fail": Operation(Saying, self.fail, target=the_handle, where="owner"),
            "run.ask": Operation(Saying, self.ask, target=the_handle, where="owner"),
            "run.take": Operation(OfRun, self.take, target=the_handle, where="owner"),
        }

    async def ls(self, args: Listing, caller: Caller) -> Rows:
        if args.handle:
            agent_seat(self._node, args.handle)
        for run in await self._node.runs.all(args.handle):
            yield row_of(run)

    async def show(self, args: OfRun, caller: Caller) -> Rows:
        yield shown(await self._run(args.handle, args.run_id))

    async def complete(self, args: Saying, caller: Caller) -> Rows:
        await self._check(args)
        await self._node.runs.completed(args.handle, args.run_id, args.text)
        yield self._done(args, "its result goes to the seat's inbox")

    async def fail(self, args: Saying, caller: Caller) -> Rows:
        await self._check(args)
        reason = args.text or f"{caller.user} ended it"
        await self._node.runs.failed(args.handle, args.run_id, reason)
        yield self._done(args, "that it failed goes to the seat's inbox")

    async def ask(self, args: Saying, caller: Caller) -> Rows:
        run = await self._check(args)
        if not args.text.strip():
            raise Refused("bad_args", "a question is needed", exit=2)
        if run is not None and run.state is State.RESUMING:
            way = f"`crewlet run take {args.handle} {args.run_id}` takes it"
            raise Refused("not_so", f"its last question was answered: {way}")
        await self._node.runs.asks(args.handle, args.run_id, args.text)
        yield self._done(args, "the next message of its conversation is its answer")

    async def take(self, args: OfRun, caller: Caller) -> Rows:
        await self._run(args.handle, args.run_id)
        event = await self._node.runs.take(args.handle, args.run_id)
        yield {"handle": args.handle, "run_id": args.run_id, **reply_of(event)}

    async def _run(self, handle: str, run_id: str) -> Run:
        agent_seat(self._node, handle)
        try:
            return await self._node.runs.get(handle, run_id)
        except NoRun:
            why = f"{handle} has no run {run_id[:SHOWN]!r}; `crewlet run ls {handle}`"
            raise Refused(NOT_FOUND, why) from None

    async def _check(self, args: Saying) -> Run | None:
        """None while a turn of the seat runs that may be about to open it: what is said of the
        run waits for that."""
        agent_seat(self._node, args.handle)
        opening = self._node.turns.running(args.handle) is not None  # asked first: it may end
        try:
            run = await self._run(args.handle, args.run_id)
        except Refused:
            if opening:
                return None
            raise
        if run.over:
            raise Refused("not_so", f"it has {run.state.value} already")
        return run

    def _done(self, args: Saying, note: str) -> Done:
        return Done(target=args.handle, node=self._node.node_id, changed=True, note=note)


def row_of(run: Run) -> RunRow:
    told = _last(run)
    return RunRow(
        handle=run.handle,
        run_id=run.run_id,
        state=run.state.value,
        holds=run.holds,
        since=run.opened_at if told is None else told.at,
        text="" if told is None else told.text,
    )


def shown(run: Run) -> dict[str, Any]:
    """A run whole."""
    origin, told = run.origin, _last(run)
    return {
        "handle": run.handle,
        "run_id": run.run_id,
        "state": run.state.value,
        "holds": run.holds,
        "opened_at": run.opened_at,
        "turn_id": origin.turn_id,
        "conversation": origin.conversation_identity or origin.partition_key,
        "triggers": origin.triggers,
        "traceparent": origin.traceparent,
        "node": run.node,
        "question": run.question.text if run.question else "",
        "answered_by": run.reply.event_id if run.reply else "",
        "answer_taken": run.reply.taken if run.reply else None,
        "ended_at": run.end.at if run.end else None,
        "text": told.text if told else "",
    }


def _last(run: Run) -> Notice | None:
    """What was said of it last, as far as it still stands."""
    return run.end if run.over else run.question if run.state is State.ASKING else None


def reply_of(event: Event) -> dict[str, Any]:
    """Who said what: of a notification, as its vendor has it."""
    said = event.value("notification", dict[str, Any], {})
    text = said.get("body") or event.value("body", str, "") or event.value("text", str, "")
    sender = said.get("sender") or event.value("sender", str, "") or event.source
    return {
        "sender": sender,
        "text": text,
        "event_id": event.id,
        "at": event.timestamp,
        "traceparent": event.trace.traceparent,
    }
