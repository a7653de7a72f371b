"""Task queues on Redis, as contestants that empty a full queue: what a user would pick instead.

The job is the same: 500 bytes, a function that does nothing, acknowledged after it ran. Each brings
its own envelope on top, and a redis-server that syncs its log as the broker does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from benchmarks.contestants import Contestant
from benchmarks.peers.face import Measured
from benchmarks.peers.redis_server import PROGRAM, find_redis, redis_server
from benchmarks.place import Place
from benchmarks.report import Report
from crewlet.broker.settings import Sync

QUEUES: Final[Mapping[str, str]] = {"dramatiq, redis": "dramatiq", "celery, redis": "celery"}
"""Whoever is compared, and what has to be installed for it."""


class JobQueue(Contestant):
    """One of them, whose worker is a process of its own, on a redis-server of its own."""

    def __init__(self, subject: str, sync: Sync) -> None:
        self.subject = subject
        self._sync = sync
        self._closing = AsyncExitStack()

    async def open(self, place: Place) -> None:
        folder = self._closing.enter_context(tempfile.TemporaryDirectory())
        url = await self._closing.enter_async_context(redis_server(Path(folder), self._sync))
        self._worker = Measured(self.subject, url)
        await self._worker.open()
        self._closing.push_async_callback(self._worker.close)

    async def fill(self, place: Place, bodies: Sequence[bytes]) -> None:
        await self._worker.do("fill", len(bodies))

    async def drain(self, count: int) -> None:
        await self._worker.do("drain", count)

    async def emptied(self, place: Place) -> None:
        """That was waited for where the queue is."""

    async def close(self) -> None:
        await self._closing.aclose()


def job_queues(sync: Sync) -> list[Contestant]:
    """Those that can be had here."""
    return [JobQueue(subject, sync) for subject in QUEUES if not _lack(subject)]


def name_missing(report: Report) -> None:
    """A row for each that cannot."""
    for subject in QUEUES:
        if lack := _lack(subject):
            report.missing(subject, lack)


def _lack(subject: str) -> str:
    if find_spec(QUEUES[subject]) is None:
        return "not installed (pip install '.[bench]')"
    if find_redis() is None:
        return f"no {PROGRAM} on the PATH (apt install redis-server)"
    return ""
