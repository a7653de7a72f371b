"""Verbs about the company and the node as a whole: its state, its seats, its record."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from msgspec import Struct

from actors.admin import Caller, Refused
from actors.ports import NoMailbox
from crewlet import topics
from crewlet.errors import NodeRefused, PublishUnknown
from crewlet.events import Event, decode, encode
from crewlet.node.seats import seat_rows
from crewlet.node.verbs.operation import AnyOperation, Nothing, Operation, Rows, the_handle
from crewlet.node.view import NodeView
from crewlet.version import __version__

BACKLOG: Final = 10_000
"""Events that wait for a slow follower before it misses some: it can hold up nobody else."""

SEND_S: Final = 13.0
"""How long a person waits to hear that a task is stored: a leader may have to be elected first.
Shorter than a node that asks this one waits (desk.ANSWER_S), which could say less of it."""

SCANNED: Final = 1_000


class Send(Struct, frozen=True, forbid_unknown_fields=True):
    handle: str
    text: str
    sender: str = ""


class Events(Struct, frozen=True, forbid_unknown_fields=True):
    follow: bool = False
    last: int = 20
    type: str = "*"


class CompanyVerbs:
    """One coroutine a verb."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    def table(self) -> Mapping[str, AnyOperation]:
        return {
            "status": Operation(Nothing, self.status),
            "drain": Operation(Nothing, self.drain, target=lambda _: self._node.node_id),
            "seats": Operation(Nothing, self.seats),
            "send": Operation(Send, self.send, target=the_handle),
            "events": Operation(Events, self.events, follows=True),
        }

    async def status(self, _: Nothing, caller: Caller) -> Rows:
        node = self._node
        yield {
            "node": node.node_id,
            "pid": os.getpid(),
            "version": __version__,
            "company": node.company.name,
            "revision": node.reconcile.standing.number or None,
            "seats": len(node.company.agents()),
            "url": node.url,
            "broker": "connected" if node.broker.connected else "unreachable",
            "state": await self._state(),
            "running": [msgspec.to_builtins(turn) for turn in node.turns.all_running()],
        }

    async def _state(self) -> str:
        """As `node ls` says it of this node, which may have come to serve nothing."""
        if self._node.edge.draining or self._node.stopping.is_set():
            return "draining"
        rows = await self._node.fleet.nodes()
        return next((row.state for row in rows if row.id == self._node.node_id), "serving")

    async def drain(self, _: Nothing, caller: Caller) -> Rows:
        """Accepted, not awaited: the caller may be a turn that the drain has to wait for."""
        self._node.stopping.set()
        yield {"node": self._node.node_id, "state": "draining"}

    async def seats(self, _: Nothing, caller: Caller) -> Rows:
        for row in await seat_rows(self._node):
            yield row

    async def send(self, args: Send, caller: Caller) -> Rows:
        try:
            sent = await self._node.send(
                args.handle, args.text, sender=args.sender, within_s=SEND_S
            )
        except NodeRefused as error:
            raise Refused(error.code, str(error)) from None
        except PublishUnknown as error:
            look = f"look with `crewlet inbox peek {args.handle}` before you send it again"
            text = f"the broker did not say within {SEND_S:.0f} s whether it stored it: {look}"
            raise Refused(error.code, text, exit=1) from None
        except NoMailbox:
            way = f"`crewlet seat attach {args.handle}` makes it one"
            text = f"{args.handle} has no mailbox, and nothing was kept: {way}"
            raise Refused("no_mailbox", text, exit=1) from None
        yield {"event_id": sent.event.id, "position": sent.receipt.position}

    async def events(self, args: Events, caller: Caller) -> Rows:
        """What is kept, then what comes; a follower that reads too slowly misses some."""
        waiting: asyncio.Queue[Event] = asyncio.Queue(BACKLOG)
        seen: dict[str, None] = {}

        def heard(topic: str, event: Event) -> None:
            if not waiting.full():
                waiting.put_nowait(event)

        following = None
        if args.follow:
            following = await self._node.queue.subscribe_stream(topics.EVENTS, heard)
        try:
            for body in await self._recent(args):
                event = decode(body)
                seen[event.id] = None
                yield _event_row(event)
            while following is not None:
                event = await waiting.get()
                if event.id not in seen and fnmatchcase(event.type, args.type):
                    yield _event_row(event)
        finally:
            if following is not None:
                await following.close()

    async def _recent(self, args: Events) -> list[bytes]:
        """The last of this type, however much of others came since; of a pattern, those among the
        newest `SCANNED`."""
        pattern, most = topics.EVENTS, args.last
        if not args.last:
            return []
        if set(args.type) & set("*?["):
            most = args.last if args.type == "*" else max(args.last, SCANNED)
        elif topics.is_subject(args.type):
            pattern = topics.event(args.type)
        else:
            return []
        found = await self._node.broker.recent(pattern, most)
        wanted = [body for topic, body in found if fnmatchcase(topic.split(".", 2)[-1], args.type)]
        return wanted[-args.last :]


def _event_row(event: Event) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.json.decode(encode(event), type=dict[str, msgspec.Raw])
    row.setdefault("summary", event.summary)
    return row
