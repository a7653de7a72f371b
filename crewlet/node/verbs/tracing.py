"""`trace on` and `trace off`: the steps of a seat's machines, as they happen.

A seat is traced for as long as somebody watches: what nobody reads costs nothing, and a shell
that dies leaves no trace behind.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from actors.admin import Caller, Refused
from actors.messages import Stepped
from crewlet.node.verbs.lookup import agent_seat, consumer
from crewlet.node.verbs.operation import AnyOperation, Done, OfSeat, Operation, Rows, the_handle
from crewlet.node.view import NodeView

LOOK_S: Final = 2.0
"""After so much silence it is seen whether the seat is here still."""

BACKLOG: Final = 1_000
"""Steps that wait for a slow watcher before it misses some."""


class StepRow(Struct, frozen=True, kw_only=True):
    """What came to a box, and what became of it. The first rows say how each box stands; one
    with `missed` says that the watcher was too slow for so many."""

    at: datetime
    box: str
    given: str
    before: str
    after: str
    effects: tuple[str, ...] = ()
    missed: int = 0


class Watcher:
    """One who reads the steps of a seat. None ends it."""

    def __init__(self) -> None:
        self.steps: asyncio.Queue[StepRow | None] = asyncio.Queue()
        self.missed = 0

    def heard(self, row: StepRow | None) -> None:
        """Never waits and never raises: it is called inside the seat."""
        if row is not None and self.steps.qsize() >= BACKLOG:
            self.missed += 1
            return
        self.steps.put_nowait(row)


class TraceVerbs:
    """One coroutine a verb. All who watch one seat share one ear in its actor."""

    def __init__(self, node: NodeView) -> None:
        self._node = node
        self._watchers: dict[str, list[Watcher]] = {}

    def table(self) -> Mapping[str, AnyOperation]:
        return {
            "trace.on": Operation(OfSeat, self.on, where="owner", follows=True),
            "trace.off": Operation(OfSeat, self.off, target=the_handle, where="owner"),
        }

    async def on(self, args: OfSeat, caller: Caller) -> Rows:
        agent_seat(self._node, args.handle)
        described = await consumer(self._node, args.handle)
        watcher = Watcher()
        watchers = self._watchers.setdefault(args.handle, [])
        watchers.append(watcher)
        try:
            if len(watchers) == 1:
                await self._node.runtime.watch(args.handle, self._ear(args.handle))
            now = self._node.clock.now()
            for box in described.boxes:
                yield StepRow(at=now, box=box.box, given="", before=box.state, after=box.state)
            while (row := await self._next(watcher, args.handle)) is not None:
                yield row
                if watcher.missed:
                    missed, watcher.missed = watcher.missed, 0
                    yield StepRow(
                        at=row.at, box=row.box, given="", before="", after="", missed=missed
                    )
        finally:
            watchers.remove(watcher)
            await self._hear_no_more(args.handle)

    async def _next(self, watcher: Watcher, handle: str) -> StepRow | None:
        """The next step; None when the trace was ended. Refused when the seat has gone: whoever
        works it now does not know who watched."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    return await watcher.steps.get()
            if await self._node.runtime.describe(handle) is None:
                text = f"{handle} has left {self._node.node_id}; trace it again, and it is found"
                raise Refused("moved", text, exit=1)

    async def off(self, args: OfSeat, caller: Caller) -> Rows:
        agent_seat(self._node, args.handle)
        watchers = list(self._watchers.get(args.handle, ()))
        for watcher in watchers:
            watcher.heard(None)
        note = f"{len(watchers)} who watched were told" if watchers else "nobody watched"
        yield Done(target=args.handle, node=self._node.node_id, changed=bool(watchers), note=note)

    def _ear(self, handle: str) -> _Ear:
        return _Ear(self._node, self._watchers[handle])

    async def _hear_no_more(self, handle: str) -> None:
        if not self._watchers[handle]:
            del self._watchers[handle]
            await self._node.runtime.watch(handle, None)


class _Ear:
    """What the seat's actor calls."""

    def __init__(self, node: NodeView, watchers: list[Watcher]) -> None:
        self._node = node
        self._watchers = watchers

    def __call__(self, step: Stepped) -> None:
        row = StepRow(
            at=self._node.clock.now(),
            box=step.box,
            given=step.given,
            before=step.before,
            after=step.after,
            effects=step.effects,
        )
        for watcher in self._watchers:
            watcher.heard(row)
