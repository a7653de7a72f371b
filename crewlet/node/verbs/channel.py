"""Verbs about channels between seats: look, show, and ask from inside a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from actors.admin import Caller, Refused
from crewlet.a2a.channel import Channel
from crewlet.errors import AskRefused
from crewlet.node.verbs.lookup import agent_seat
from crewlet.node.verbs.operation import AnyOperation, Operation, Rows
from crewlet.node.view import NodeView

SHOWN = 64


class Listing(Struct, frozen=True, forbid_unknown_fields=True):
    """`all`: also those that are closed."""

    all: bool = False


class One(Struct, frozen=True, forbid_unknown_fields=True):
    channel: str


class Ask(Struct, frozen=True, forbid_unknown_fields=True):
    """`turn` is the id of the turn that asks; it runs on this node."""

    handle: str
    brief: str
    turn: str


class ChannelVerbs:
    """One coroutine a verb."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        return {
            "channel.ls": Operation(Listing, self.list),
            "channel.show": Operation(One, self.show),
            "ask": Operation(Ask, self.ask),
        }

    async def list(self, args: Listing, caller: Caller) -> Rows:
        """The oldest first."""
        kept = [one.channel for one in await self._node.channels.all()]
        for channel in sorted(kept, key=lambda one: one.opened_at):
            if args.all or channel.closed_at is None:
                yield self._row(channel)

    async def show(self, args: One, caller: Caller) -> Rows:
        kept = await self._node.channels.get(args.channel)
        if kept is None:
            raise Refused(
                "not_found",
                f"there is no channel {args.channel[:SHOWN]!r}: a record is deleted seven days "
                "after the end; `crewlet channel ls --all` shows those there are",
            )
        channel = kept.channel
        more = msgspec.to_builtins(channel)
        hidden = ("reply", "trace", "state", "asker", "target")
        yield {**self._row(channel), **{k: v for k, v in more.items() if k not in hidden}}

    async def ask(self, args: Ask, caller: Caller) -> Rows:
        """In the name of a turn whose handler is a process of its own."""
        agent_seat(self._node, args.handle)
        desk = self._node.turns.desk_of(args.turn)
        if desk is None:
            raise Refused(
                "no_turn",
                f"no turn {args.turn[:SHOWN]!r} runs on {self._node.node_id}: a turn asks while it "
                "runs, and the node that runs it",
            )
        try:
            asked = await desk.ask(args.handle, args.brief)
        except AskRefused as refusal:
            raise Refused(refusal.code, str(refusal)) from None
        yield {"handle": args.handle, "note": asked.answer}

    def _row(self, channel: Channel) -> dict[str, Any]:
        quiet = self._node.clock.now() - channel.quiet_since
        return {
            "channel": channel.id,
            "state": channel.state,
            "asker": channel.asker,
            "target": channel.target,
            "messages": channel.count,
            "depth": channel.depth,
            "quiet_s": round(max(0.0, quiet.total_seconds()), 3),
            "closed_by": channel.closed_by if channel.closed_at else "",
            "reason": channel.reason,
        }
