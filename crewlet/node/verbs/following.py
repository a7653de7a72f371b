"""Answers without an end, for another node: it takes them piece by piece, as it can carry them.

An answer is kept for as long as somebody comes for it: whoever does not come again within
`FORGOTTEN_S` has gone, and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from crewlet.node.verbs.operation import Rows

PATIENCE_S: Final = 5.0
"""How long a piece waits for its first row; an empty one says that the answer goes on."""

FORGOTTEN_S: Final = 20.0

PIECE_BYTES: Final = 1024 * 1024
"""A piece ends with the row that reaches this."""

AHEAD: Final = 100
"""Rows that are read before they are taken; the verb has a backlog of its own."""


class Following:
    """All such answers of one node, each by the name that its taker gave it."""

    def __init__(self) -> None:
        self._open: dict[str, _Answer] = {}

    async def take(self, name: str, begin: Callable[[], Rows]) -> tuple[list[Raw], bool]:
        """The rows since the last piece, and whether more may come. Raises what the answer ended
        with, after its rows were taken."""
        answer = self._open.get(name)
        if answer is None:
            answer = self._open[name] = _Answer(begin(), lambda: self._open.pop(name, None))
        return await answer.piece()

    async def end(self, name: str) -> None:
        """Nobody comes for it any more."""
        if (answer := self._open.pop(name, None)) is not None:
            await answer.close()

    async def stop(self) -> None:
        for name in list(self._open):
            await self.end(name)


class _Answer:
    def __init__(self, rows: Rows, forget: Callable[[], object]) -> None:
        self._rows: asyncio.Queue[Raw] = asyncio.Queue(AHEAD)
        self._forget = forget
        self._reading = asyncio.ensure_future(self._read(rows))
        # How it ended is told to whoever takes the last piece; if nobody does, nobody asks.
        self._reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._timer: asyncio.TimerHandle | None = None

    async def _read(self, rows: Rows) -> None:
        async with contextlib.aclosing(rows):
            async for row in rows:
                await self._rows.put(Raw(msgspec.json.encode(row)))

    async def piece(self) -> tuple[list[Raw], bool]:
        if self._timer is not None:
            self._timer.cancel()
        found = await self._first()
        size = sum(map(len, found))
        while size < PIECE_BYTES and not self._rows.empty():
            found.append(self._rows.get_nowait())
            size += len(found[-1])
        if found or not self._reading.done():
            self._timer = asyncio.get_running_loop().call_later(FORGOTTEN_S, self._abandon)
            return found, True
        self._forget()
        if not self._reading.cancelled():  # by the end of this node
            await self._reading
        return [], False

    async def _first(self) -> list[Raw]:
        """Its next row, as soon as it comes; none at the end, or when patience is over."""
        row = asyncio.ensure_future(self._rows.get())
        try:
            await asyncio.wait(
                (row, self._reading), timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
            )
            return [row.result()] if row.done() else []
        finally:
            row.cancel()

    def _abandon(self) -> None:
        self._forget()
        self._reading.cancel()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._reading.cancel()
        await asyncio.wait((self._reading,))
