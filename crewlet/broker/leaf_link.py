"""The one connection that matters to a leaf: its server's to the members.

Our own client is connected to the server beside it, which answers whatever becomes of the members.
What is parked at them, or on its way, is lost with that server's connection; so its breaks are to
the client what breaks of its own would be. The server tells of them in its log only. That it is
there again is asked for across it.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

import structlog
from msgspec import Struct

from actors.ports import NotLive, Unavailable
from crewlet.broker.api import Api, ApiError
from crewlet.broker.server_log import LogTail

log = structlog.get_logger(__name__)

LOOK_S: Final = 0.2
"""How late a break is noticed, beyond what the server needs for it: one look is one stat."""

ASK_S: Final = 1.0

_BROKE: Final = re.compile(r"Leafnode connection (?:created|closed)")
_TROUBLE: Final = re.compile(r"\[ERR\] (.*)")


class News(Struct, frozen=True):
    """What lines of the log tell: whether the connection is another one, or none, and the last
    that went wrong."""

    broke: bool
    trouble: str


def news(lines: str) -> News:
    """A connection that was made anew is a break of the one before."""
    found = _TROUBLE.findall(lines)
    return News(_BROKE.search(lines) is not None, found[-1].strip()[:200] if found else "")


class LinkWatch:
    """Keeps the wire told, from `start` to `stop`."""

    def __init__(self, api: Api, tail: LogTail) -> None:
        self._api = api
        self._wire = api.wire
        self._tail = tail
        self._task: asyncio.Task[None] | None = None
        self.trouble = ""
        self._wire.set_linked(False)
        self._wire.on_down.append(lambda: self._wire.set_linked(False))

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _follow(self) -> None:
        while True:
            told = self._read()
            if self._wire.connected:
                if told.broke:
                    log.warning("broker_leaf_unlinked", reason=told.trouble)
                    self._wire.set_linked(False)
            elif await self._answers() and "connection closed" not in self._tail.new_lines():
                self.trouble = ""
                log.info("broker_leaf_linked")
                self._wire.set_linked(True)
            await asyncio.sleep(LOOK_S)

    def _read(self) -> News:
        told = news(self._tail.new_lines())
        if told.trouble and told.trouble != self.trouble:
            self.trouble = told.trouble
            log.warning("broker_leaf_trouble", reason=told.trouble)
        return told

    async def _answers(self) -> bool:
        """Across the connection, by a server that has the mail."""
        try:
            await self._api.call("INFO", wait_s=ASK_S)
        except (ApiError, NotLive, Unavailable):
            return False
        return True
