"""The leases of a fleet as they are written: who had which seat until when, and what it costs.

A plain connection hears every write to their stream; a write that the server refuses is heard
too, and costs as much.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from nats.aio.client import Client
from nats.aio.msg import Msg

from crewlet.broker import names
from crewlet.broker.api import Api
from crewlet.broker.completion import EXPECT
from crewlet.broker.settings import EVENT_RETENTION_HOURS
from crewlet.broker.topology import Topology
from crewlet.coordination.store import LEASES

ROW = {
    "owner": "a-node-of-the-fleet-12345-0123456789abcdef",
    "node": "first",
    "epoch": 1,
    "session": 1,
    "released": False,
    "preferred": "",
    "about": {},
}
"""What a bare loop writes: as long as a real one."""


@dataclass
class Rows:
    """`released`: when a seat was let go of, each time. `claimed`: when a seat was first taken."""

    messages: int = 0
    octets: int = 0
    claimed: dict[str, float] = field(default_factory=dict)
    released: dict[str, list[float]] = field(default_factory=dict)

    async def listen(self, client: Client) -> None:
        await client.subscribe(names.keys_of(LEASES), cb=self._heard)
        await client.flush()

    async def _heard(self, message: Msg) -> None:
        now = time.monotonic()
        self.messages += 1
        headers = sum(len(name) + len(text) + 4 for name, text in (message.headers or {}).items())
        self.octets += len(message.subject) + headers + len(message.data)
        kind, _, handle = message.subject.removeprefix(names.keys_of(LEASES, "")).partition(".")
        if kind != "seat":
            return
        if json.loads(message.data)["released"]:
            self.released.setdefault(handle, []).append(now)
        else:
            self.claimed.setdefault(handle, now)

    def forget(self) -> None:
        self.claimed.clear()
        self.released.clear()

    def gaps(self, established: dict[str, float]) -> list[float]:
        """Seconds from each seat's last release to its mailboxes being attached elsewhere."""
        found = []
        for handle, at in established.items():
            before = [then for then in self.released.get(handle, ()) if then < at]
            found += [at - max(before)] if before else []
        return sorted(found)


def percentile(ordered: Sequence[float], per_cent: float) -> float:
    """0 of nothing."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * per_cent / 100))] if ordered else 0.0


async def bare_writes(api: Api, seats: int, at_once: int) -> float:
    """Rows a second that a loop writes which does nothing else, each where nothing is: into a
    stream beside the fleet's, made as that one is."""
    topology = Topology(api, memory=False, replicas=1, event_retention_hours=EVENT_RETENTION_HOURS)
    config = topology.bucket(LEASES) | {"name": "BARE", "subjects": ["bare.>"]}
    await api.call("STREAM.CREATE.BARE", config)
    body = json.dumps(ROW).encode()
    numbers = iter(range(seats))

    async def work() -> None:
        for number in numbers:
            await api.ask(f"bare.seat.s{number}", body, headers={EXPECT: "0"})

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    took_s = time.perf_counter() - began
    await api.call("STREAM.DELETE.BARE")
    return seats / took_s
