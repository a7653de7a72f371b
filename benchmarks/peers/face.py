"""The face of an actor system that is measured, and the process that a peer is measured in.

`python -m benchmarks.peers.face NAME [ABOUT]` is that process: one JSON object in, as
`{"do": "ping_pong", "count": 1000}`, one number out. Each peer has a process of its own, fresh and
alike, so that none is slowed by another's threads and memory is nobody else's.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from typing import Any, Final, Protocol

import psutil

ANSWER_S: Final = 120.0
"""Longer than anything that is asked here takes."""

BURST: Final = 500
"""Messages that are sent one way before the receiver is waited for."""

MODULES: Final[Mapping[str, str]] = {
    "asyncio.Queue": "benchmarks.peers.queues",
    "crewlet": "benchmarks.peers.ours",
    "thespian simpleSystemBase": "benchmarks.peers.thespians",
    "thespian multiprocTCPBase": "benchmarks.peers.thespians",
    "pykka": "benchmarks.peers.pykkas",
    "xoscar": "benchmarks.peers.xoscars",
}
"""Actor systems, and the module whose `open_peer(name)` makes it."""

JOB_QUEUES: Final = "benchmarks.peers.job_workers"
"""Where anything else that can be measured is made."""

NEEDS: Final[Mapping[str, str]] = {"pykka": "pykka", "xoscar": "xoscar"}
"""What has to be installed for it, beyond what the runtime needs."""


class Peer(Protocol):
    """An actor system. Each verb answers seconds of the processor, of the work alone: not of making
    who does it. What else the machine does counts for nothing then, nor what is waited for.

    A message and its answer are two messages; the limit, two tasks and two queues, as well.
    """

    def ping_pong(self, count: int) -> float:
        """Two actors send each other one message to and fro until `count` were handled."""

    def one_way(self, count: int) -> float:
        """One sends, the other handles; the sender waits after each `BURST`."""

    def ask(self, count: int) -> float:
        """Somebody outside asks, and waits for the answer, `count` times."""

    def create(self, count: int) -> float:
        """Until all of them are ready to handle a message. They stay."""

    def wait_for(self, pending: int) -> None:
        """From now on so many timers are pending, none of which is due soon. NotImplementedError
        where the system has none."""

    def close(self) -> None:
        """End all of them."""


def bursts(count: int) -> list[int]:
    """`count` messages, cut into bursts."""
    whole, rest = divmod(count, BURST)
    return [BURST] * whole + ([rest] if rest else [])


def resident() -> int:
    """Bytes of this process and of all that it forked; what they share is counted once."""
    gc.collect()
    return sum(one.memory_full_info().pss for one in (psutil.Process(), *_forked()))


def spent_elsewhere() -> float:
    """Seconds of the processor that the processes used which this one forked."""
    times = [one.cpu_times() for one in _forked()]
    return float(sum(one.user + one.system for one in times))


def _forked() -> list[psutil.Process]:
    """Also those that left it: all have its command line."""
    mine = psutil.Process()
    line, every = mine.cmdline(), psutil.process_iter(["cmdline"])
    return [one for one in every if one.info["cmdline"] == line and one.pid != mine.pid]


# -- the process, as the benchmark sees it ----------------------------------------------------


class Measured:
    """One peer in its process. `about` is what it has to know besides its name."""

    def __init__(self, name: str, *about: str) -> None:
        self.name = name
        self._about = about
        self._child: Process | None = None

    async def open(self) -> None:
        command = (sys.executable, "-m", "benchmarks.peers.face", self.name, *self._about)
        self._child = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)

    async def do(self, what: str, count: int) -> float:
        """The answer; RuntimeError where the process ended instead."""
        assert self._child is not None
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(json.dumps({"do": what, "count": count}).encode() + b"\n")
        async with asyncio.timeout(ANSWER_S):
            line = await self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended while it was asked for {what}")
        return float(line)

    async def close(self) -> None:
        if self._child is not None:
            self._child.stdin.close()  # type: ignore[union-attr]
            await self._child.wait()


# -- the process itself -----------------------------------------------------------------------


def _serve(name: str, *about: str) -> None:
    module = importlib.import_module(MODULES.get(name, JOB_QUEUES))
    peer: Peer = module.open_peer(name, *about)
    try:
        for line in sys.stdin:
            asked: dict[str, Any] = json.loads(line)
            os.write(1, f"{_answer(peer, asked['do'], asked['count'])}\n".encode())
    finally:
        peer.close()


def _answer(peer: Peer, what: str, count: int) -> float:
    if what == "memory":  # KiB that each of `count` actors adds
        before = resident()
        peer.create(count)
        return (resident() - before) / 1024 / count
    if what == "wait_for":
        peer.wait_for(count)
        return 0.0
    return float(getattr(peer, what)(count))


if __name__ == "__main__":
    _serve(*sys.argv[1:])
