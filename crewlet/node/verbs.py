"""What a running node answers over its socket: a closed table of verbs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from msgspec import Struct

from actors.admin import Failure, Refused, Verb
from actors.admin.verbs import AnyVerb
from actors.ports import BrokerError
from crewlet import topics
from crewlet.errors import CrewletError, NodeRefused
from crewlet.events import Event, decode, encode
from crewlet.node import dead_letters
from crewlet.node.seats import seat_rows
from crewlet.node.view import NodeView
from crewlet.version import __version__

BACKLOG: Final = 10_000
"""Events that wait for a slow follower before it misses some: it can hold up nobody else."""


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class Send(Struct, frozen=True, forbid_unknown_fields=True):
    handle: str
    text: str
    sender: str = ""


class Listing(Struct, frozen=True, forbid_unknown_fields=True):
    limit: int = 100


class One(Struct, frozen=True, forbid_unknown_fields=True):
    id: str


class Replay(Struct, frozen=True, forbid_unknown_fields=True):
    ids: tuple[str, ...]
    dry_run: bool = False


class Drop(Struct, frozen=True, forbid_unknown_fields=True):
    ids: tuple[str, ...]


class Events(Struct, frozen=True, forbid_unknown_fields=True):
    follow: bool = False
    last: int = 20
    type: str = "*"


Rows = AsyncGenerator[object, None]


def verbs_of(node: NodeView) -> Mapping[str, AnyVerb]:
    """The table: name, arguments, what answers."""
    answers = _Answers(node)
    return {
        "status": Verb(Nothing, answers.status),
        "drain": Verb(Nothing, answers.drain),
        "seats": Verb(Nothing, answers.seats),
        "send": Verb(Send, answers.send),
        "dlq.list": Verb(Listing, answers.dlq_list),
        "dlq.show": Verb(One, answers.dlq_show),
        "dlq.replay": Verb(Replay, answers.dlq_replay),
        "dlq.drop": Verb(Drop, answers.dlq_drop),
        "events": Verb(Events, answers.events, follows=True),
    }


def explained(error: Exception) -> Failure | None:
    """Our own errors in their own words; anything else is a bug, and is told as one."""
    if isinstance(error, CrewletError):
        return Failure(error.code, str(error), exit=2 if error.blame == "caller" else 1)
    if isinstance(error, BrokerError):
        return Failure("broker", f"the broker did not do it: {error}", exit=1)
    return None


class _Answers:
    """One coroutine a verb."""

    def __init__(self, node: NodeView) -> None:
        self._node = node

    async def status(self, _: Nothing) -> Rows:
        node = self._node
        yield {
            "node": node.node_id,
            "pid": os.getpid(),
            "version": __version__,
            "company": node.company.name,
            "seats": len(node.company.agents()),
            "url": node.url,
            "broker": "connected" if node.broker.connected else "unreachable",
            "state": "draining" if node.edge.draining else "serving",
            "running": [msgspec.to_builtins(turn) for turn in node.turns.all_running()],
        }

    async def drain(self, _: Nothing) -> Rows:
        """Accepted, not awaited: the caller may be a turn that the drain has to wait for."""
        self._node.stopping.set()
        yield {"node": self._node.node_id, "state": "draining"}

    async def seats(self, _: Nothing) -> Rows:
        for row in await seat_rows(self._node):
            yield row

    async def send(self, args: Send) -> Rows:
        try:
            sent = await self._node.send(args.handle, args.text, sender=args.sender)
        except NodeRefused as error:
            raise Refused(error.code, str(error)) from None
        yield {"event_id": sent.event.id, "position": sent.receipt.position}

    # -- dead letters -----------------------------------------------------------------

    async def dlq_list(self, args: Listing) -> Rows:
        for letter in await self._node.broker.dead_letters(args.limit):
            yield dead_letters.row_of(letter)

    async def dlq_show(self, args: One) -> Rows:
        letter = await self._node.broker.dead_letter(args.id)
        if letter is None:
            raise Refused("not_found", f"there is no dead letter {args.id}; `crewlet dlq list`")
        yield dead_letters.shown(letter)

    async def dlq_replay(self, args: Replay) -> Rows:
        node = self._node
        for id in args.ids:
            yield await dead_letters.replay(node.broker, node.ledger, id, dry_run=args.dry_run)

    async def dlq_drop(self, args: Drop) -> Rows:
        for id in args.ids:
            dropped = await self._node.broker.drop_dead_letter(id)
            yield {"id": id, "dropped": dropped, "note": "" if dropped else "no such dead letter"}

    # -- events -----------------------------------------------------------------------

    async def events(self, args: Events) -> Rows:
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
            for _, body in await self._recent(args.last):
                event = decode(body)
                seen[event.id] = None
                if fnmatchcase(event.type, args.type):
                    yield _event_row(event)
            while following is not None:
                event = await waiting.get()
                if event.id not in seen and fnmatchcase(event.type, args.type):
                    yield _event_row(event)
        finally:
            if following is not None:
                await following.close()

    async def _recent(self, last: int) -> list[tuple[str, bytes]]:
        return list(await self._node.broker.recent(topics.EVENTS, last)) if last else []


def _event_row(event: Event) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.json.decode(encode(event), type=dict[str, msgspec.Raw])
    row.setdefault("summary", event.summary)
    return row
