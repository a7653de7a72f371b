"""A node of a benchmark's fleet: a process of its own that can be measured, stopped and killed.

As a script it is that process: it is told on the first line of its standard input what to be, runs
a node until that input ends, and writes one line of JSON for everything that happens to its seats.
Its clock is the machine's monotonic one, which all processes share.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import psutil
from msgspec import Struct

from actors.machines.timing import scaled
from benchmarks.mailboxes import company_of
from crewlet import Node, Turn, logs
from crewlet.broker.settings import StreamSettings
from crewlet.company import NodeSettings
from crewlet.company.node_file import ApiSettings, NodeIdentity
from crewlet.node import node as node_module
from crewlet.node import place
from crewlet.node.garbage import collected_seldom
from crewlet.topics import is_handle

COMMAND: Final = (sys.executable, "-m", "benchmarks.member")
BOOT_S: Final = 180.0
POLL_S: Final = 0.02


class Order(Struct, frozen=True):
    """What a process is told to be; `data` is its folder. With a `secret` it takes webhooks of
    GitHub that are proved by it."""

    id: str
    url: str
    seats: int
    data: str
    ttl_s: float
    replicas: int = 1
    secret: str = ""


class Member:
    """The process, as the benchmark sees it. `established`: when each of its seats had its
    mailboxes attached, the last time that it had; `booted_s`: how long the node took to start,
    with every seat that it took; `web`: where it takes webhooks."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.web = ""
        self._child: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self.booted_s = 0.0
        self.resident_before = 0
        self.established: dict[str, float] = {}

    @property
    def id(self) -> str:
        return self._order.id

    @property
    def process(self) -> psutil.Process:
        assert self._child is not None
        return psutil.Process(self._child.pid)

    async def start(self) -> None:
        """Returns when the node has started."""
        self.booted_s = 0.0
        self.established.clear()
        self._child = await asyncio.create_subprocess_exec(*COMMAND, stdin=PIPE, stdout=PIPE)
        assert self._child.stdin is not None
        # It holds the broker's password: an argument is for everybody to read.
        self._child.stdin.write(json.dumps(_as_object(self._order)).encode() + b"\n")
        self._reading = asyncio.create_task(self._read(self._child))
        await until(lambda: self.booted_s > 0 or not self.running, BOOT_S)
        if not self.running:
            raise RuntimeError(f"the node {self.id} did not start")

    @property
    def running(self) -> bool:
        return self._reading is not None and not self._reading.done()

    def ask_to_stop(self) -> None:
        assert self._child is not None and self._child.stdin is not None
        self._child.stdin.close()

    def kill(self) -> float:
        """As a power cut would; when."""
        assert self._child is not None
        at = time.monotonic()
        self._child.kill()
        return at

    async def ended(self) -> None:
        if self._child is not None and self._reading is not None:
            await self._child.wait()
            await self._reading

    async def stop(self) -> None:
        """Gone, in order if it runs. Idempotent."""
        if self._child is not None and self._child.returncode is None:
            self.ask_to_stop()
        await self.ended()

    async def _read(self, child: Process) -> None:
        assert child.stdout is not None
        async for line in child.stdout:
            said: dict[str, Any] = json.loads(line)
            match said["what"]:
                case "seat_established":
                    self.established[said["handle"]] = said["at"]
                case "seat_released" | "seat_lost":
                    self.established.pop(said["handle"], None)
                case "imported":
                    self.resident_before = self.process.memory_info().rss
                case "started":
                    self.web = said["web"]
                    self.booted_s = said["took_s"]


async def until(there: Callable[[], bool], within_s: float) -> None:
    """TimeoutError if it has not come about; what is measured are the times that were noted."""
    async with asyncio.timeout(within_s):
        while not there():  # noqa: ASYNC110 - another process's
            await asyncio.sleep(POLL_S)


def _as_object(order: Order) -> dict[str, object]:
    return {name: getattr(order, name) for name in order.__struct_fields__}


# -- the process itself -----------------------------------------------------------------------


class _Told(place.Place):
    """A place in the fleet that says aloud what happens to its seats."""

    def _on_fleet(self, event: str, about: Mapping[str, object]) -> None:
        super()._on_fleet(event, about)
        handle = str(about.get("handle", ""))
        if event.startswith("seat_") and is_handle(handle):  # a duty is no seat
            _say(event, handle=handle)


async def _run(order: Order) -> None:
    settings = NodeSettings(
        stream=StreamSettings(type="nats", url=order.url, replicas=order.replicas),
        api=ApiSettings(port=0),
        node=NodeIdentity(id=order.id),
        lease=scaled(order.ttl_s),
    )
    company = company_of(order.seats, order.secret)
    _say("imported")
    began = time.monotonic()
    vars(node_module)["Place"] = _Told  # the node has no other ear for this
    node = Node(
        company,
        turn=_nothing,
        settings=settings,
        data=Path(order.data),
        web=bool(order.secret),
        admin=False,
    )
    async with collected_seldom(), node:
        _say("started", took_s=time.monotonic() - began, web=node.url)
        await asyncio.to_thread(sys.stdin.read)


async def _nothing(turn: Turn) -> None:
    return None


def _say(what: str, **about: object) -> None:
    line = json.dumps({"what": what, "at": time.monotonic(), **about})
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    logs.configure()
    asyncio.run(_run(Order(**json.loads(sys.stdin.readline()))))
