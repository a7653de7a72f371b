"""A fleet under observation: servers, a link and a process for each node, ears on the broker."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError

from actors.ports import BrokerError
from actors.system import SystemClock
from crewlet import topics
from crewlet.broker import JetStreamBroker
from crewlet.broker.dial import Address
from crewlet.errors import CrewletError
from crewlet.events import Event, Trace
from crewlet.events import catalogue as types
from crewlet.queue import Publisher
from tests.chaos.checks import Completed, LeaseRow, Recorded, Turn, ledger_key, turns_of
from tests.chaos.link import Link
from tests.chaos.namespaces import Namespaces
from tests.chaos.processes import NodeProcess, until
from tests.chaos.servers import Server, make_servers
from tests.chaos.tail import Heard, Tail

LOG = "KV_crewlet_ownership"
STREAMS = ("CREWLET_AGENT", "CREWLET_EVENTS", "CREWLET_DLQ", LOG)
NODE_ROWS = "$KV.crewlet_ownership.leases.node."
SEAT_ROWS = "$KV.crewlet_ownership.leases.seat."
LEDGER_ROWS = "$KV.crewlet_ownership.ledger."
FENCES = "$KV.crewlet_ownership.fences."
EXPECT = "Nats-Expected-Last-Subject-Sequence"

TTL_S = 3.0

COMPANY = """\
name: Company X
handler: {python: "chaos_recorder:work", timeout_s: 60}
notification_coalesce_window_seconds: %(window)s
units:
  - name: unit
    lead: boss
    roles:
      - {name: Boss, handle: boss, kind: human}
"""


class Fleet:
    """`async with Fleet(...) as fleet:` the servers run and the nodes are ready to be started.

    `left` names the owners that said they were leaving, or whose session ended, with the place
    in the log where that stands."""

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 3,
        seats: int = 9,
        servers: int = 1,
        networks: bool = False,
        disks: bool = False,
        window_s: float = 0.0,
        more: str = "",
        lease: str = "",
    ) -> None:
        self.folder = folder
        self.seats = [f"s{n:02}" for n in range(seats)]
        self.networks = Namespaces(servers) if networks else None
        self.servers = make_servers(folder / "servers", servers, self.networks)
        targets = [(server.host, server.port) for server in self.servers]
        self.links = [Link(targets) for _ in range(nodes)]
        self.nodes: list[NodeProcess] = []
        self.recorded = Recorded()
        self._disks = disks
        self._names = [f"n{n + 1}" for n in range(nodes)]
        self._window_s = window_s
        self._more = more
        self._lease = lease
        self._fences: dict[str, int] = {}
        self._done: set[str] = set()
        self.sent_wall: dict[str, float] = {}
        self.left: dict[str, int] = {}
        self._tails: list[Tail] = []

    # -- life -------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open(self) -> None:
        company = self._write_company()
        if self.networks is not None:
            self.networks.open()
        for server in self.servers if self._disks else ():
            server.on_a_small_disk()
        await asyncio.gather(*(server.start() for server in self.servers))
        for link, name in zip(self.links, self._names, strict=True):
            await link.start()
            node = NodeProcess(name, self.folder / name, company, link.urls)
            node.configure(replicas=len(self.servers), more=self._more, lease=self._lease)
            self.nodes.append(node)
        urls = [server.url for server in self.servers]
        self.broker = JetStreamBroker(
            Address(tuple(urls), name="chaos"), replicas=len(self.servers)
        )
        async with asyncio.timeout(60):
            while True:  # a cluster takes a while to have a leader
                try:
                    await self.broker.start()
                    break
                except BrokerError:
                    await asyncio.sleep(0.5)
        self.queue = Publisher(self.broker, node_id="chaos", clock=SystemClock())
        self.client: Client = await nats.connect(
            urls, max_reconnect_attempts=-1, reconnect_time_wait=0.2, error_cb=_ignore
        )
        self._tails = [
            Tail(self.client, LOG, "$KV.crewlet_ownership.>", self._on_row),
            Tail(
                self.client,
                "CREWLET_EVENTS",
                topics.event(types.AGENT_TURN_COMPLETED),
                self._on_completed,
            ),
            Tail(self.client, "CREWLET_DLQ", topics.DEAD_LETTERS, self._on_dead),
        ]
        for tail in self._tails:
            tail.start()

    def _write_company(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(__file__).parent / "recorder.py", self.folder / "chaos_recorder.py")
        path = self.folder / "company.yaml"
        path.write_text(self.company_text())
        return path

    def company_text(self, number: int = 0) -> str:
        """The file, and what is made of it when it is changed for the `number`-th time."""
        roles = "".join(f"      - {{name: {s.upper()}, handle: {s}}}\n" for s in self.seats)
        window_s = self._window_s + number / 1000
        return COMPANY % {"window": window_s} + roles

    async def revisions(self) -> dict[str, int]:
        """Which one each node works by."""
        rows = await self.nodes[0].call("node.ls") or []
        return {row["id"]: row["revision"] or 0 for row in rows if row["state"] == "serving"}

    async def close(self) -> None:
        for node in self.nodes:
            await node.end()
        for tail in self._tails:
            await tail.stop()
        if hasattr(self, "client"):
            await self.client.close()
        if hasattr(self, "broker"):
            await self.broker.stop()
        for link in self.links:
            await link.stop()
        for server in self.servers:
            server.thaw()
            await server.kill()
            if server.disk is not None:
                server.disk.unmount()
        if self.networks is not None:
            self.networks.close()

    async def boot(self) -> None:
        """All nodes, until they share the seats."""
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            await node.up()
        await until(self.settled, 30, "every seat has an owner")

    def settled(self) -> bool:
        """Each seat is somebody's, in even shares."""
        return "" not in self.owners().values() and self.even()

    def even(self) -> bool:
        """The shares of the nodes that run differ by at most one."""
        shares = Counter(owner for owner in self.owners().values() if owner)
        counts = [shares[node.name] for node in self.nodes if node.running]
        return max(counts) - min(counts) <= 1

    def owners(self) -> dict[str, str]:
        """Who has each seat by the last row heard; empty for a free one."""
        owners = dict.fromkeys(self.seats, "")
        for row in self.recorded.seat_rows:
            owners[row.seat] = "" if row.released else row.node
        return owners

    async def leader(self) -> Server | None:
        """Of the stream of the leases; None while it has none."""
        try:
            info = await self.client.jetstream(timeout=3).stream_info(LOG)
        except (NatsError, TimeoutError):
            return None
        name = info.cluster.leader if info.cluster else ""
        return next((server for server in self.servers if server.name == name), None)

    async def behind(self) -> list[str]:
        """Replicas of streams and of mailboxes that are not up to date, or not known to be."""
        try:
            js = self.client.jetstream(timeout=3)
            streams = [await js.stream_info(name) for name in STREAMS]
            found = [
                _replicas(name, info.cluster) for name, info in zip(STREAMS, streams, strict=True)
            ]
            offset, total = 0, 1
            while offset < total:
                body = json.dumps({"offset": offset}).encode()
                verb = "$JS.API.CONSUMER.LIST.CREWLET_AGENT"
                page = json.loads((await self.client.request(verb, body, timeout=3)).data)
                if page.get("missing") or "error" in page:
                    return ["consumers without an answer"]
                total, offset = page["total"], offset + len(page["consumers"])
                found += [_peers(one["name"], one["cluster"]) for one in page["consumers"]]
        except (NatsError, TimeoutError, KeyError) as error:
            return [repr(error)]
        return [name for names in found for name in names]

    def node(self, name: str) -> NodeProcess:
        return next(node for node in self.nodes if node.name == name)

    # -- messages ---------------------------------------------------------------------

    async def send(self, seat: str, key: str, ms: float | str, *, conversation: str = "") -> None:
        """Publish a message of this id; counted as sent once the broker has acknowledged it."""
        event = Event.new(
            types.TASK_ASSIGNED,
            id=key,
            at=datetime.now(UTC),
            trace=Trace.root(),
            payload={"recipient_handle": seat},
            body=_task(seat, f"{key} {ms}", conversation),
        )
        async with asyncio.timeout(110):  # within the window in which ids are remembered
            while True:
                try:
                    await self.queue.publish(topics.inbox(seat), event, within_s=20)
                    break
                except (BrokerError, CrewletError):
                    await asyncio.sleep(0.2)
        self.recorded.sent[ledger_key(seat, key)] = key
        self.sent_wall[key] = time.time()

    @property
    def outstanding(self) -> int:
        """Acknowledged to us, and neither worked nor dead as far as was heard."""
        return len(self.recorded.sent) - len(self._done)

    def waits_for(self) -> list[str]:
        done = self._done
        return [key for key in self.recorded.sent.values() if key not in done]

    async def worked(self, within_s: float) -> bool:
        """Whether everything that was sent was worked in time."""
        deadline = time.monotonic() + within_s
        while self.waits_for():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.2)
        await asyncio.sleep(2.5)  # what came last may still be doubled
        return True

    # -- what is heard ----------------------------------------------------------------

    def _on_row(self, heard: Heard) -> None:
        if heard.subject.startswith(SEAT_ROWS):
            row = json.loads(heard.body)
            self.recorded.seat_rows.append(
                LeaseRow(
                    seat=heard.subject.removeprefix(SEAT_ROWS),
                    sequence=heard.sequence,
                    epoch=row["epoch"],
                    node=row["node"],
                    owner=row["owner"],
                    released=row["released"],
                    wall=heard.at.timestamp(),
                )
            )
        elif heard.subject.startswith(NODE_ROWS):
            row = json.loads(heard.body)
            if row["about"].get("leaving") or row["released"]:
                self.left.setdefault(row["owner"], heard.sequence)
        elif heard.subject.startswith(FENCES):
            self._fences[heard.headers["Nats-Batch-Id"]] = int(heard.headers[EXPECT])
        elif heard.subject.startswith(LEDGER_ROWS):
            self._on_ledger(heard)

    def _on_ledger(self, heard: Heard) -> None:
        row = json.loads(heard.body)
        batch = heard.headers.get("Nats-Batch-Id", "")
        fence = self._fences.get(batch, 0) if batch else int(heard.headers.get(EXPECT, 0))
        key = heard.subject.removeprefix(LEDGER_ROWS)
        self.recorded.completed.append(
            Completed(key, heard.sequence, fence, row["node"], row["turn_id"])
        )
        self._done.add(row["event_id"])

    def _on_completed(self, heard: Heard) -> None:
        body = json.loads(heard.body)
        if body["outcome"] == "ack":
            self.recorded.worked.update(body["triggers"])

    def _on_dead(self, heard: Heard) -> None:
        key = heard.headers["Crewlet-Message-Id"]
        self.recorded.dead[key] += 1
        self._done.add(key)

    # -- what was recorded ------------------------------------------------------------

    def turns(self) -> list[Turn]:
        """Of all nodes, by start."""
        found: list[Turn] = []
        for node in self.nodes:
            died = {life.incarnation: life.ended for life in node.lives if life.ended}
            found += turns_of(node.lines(), died)
        return sorted(found, key=lambda turn: turn.began)


def _replicas(stream: str, cluster: Any) -> list[str]:
    if cluster is None or not cluster.leader:
        return [f"{stream} has no leader"]
    return [f"{stream} on {p.name}" for p in cluster.replicas if not p.current or p.offline]


def _peers(consumer: str, cluster: dict[str, Any]) -> list[str]:
    if not cluster.get("leader"):
        return [f"{consumer} has no leader"]
    late = [p for p in cluster.get("replicas", []) if not p["current"] or p.get("offline")]
    return [f"{consumer} on {peer['name']}" for peer in late]


def _task(seat: str, text: str, conversation: str) -> dict[str, Any]:
    body = {"handle": seat, "text": text}
    if conversation:
        body |= {"partition_key": conversation, "conversation_identity": conversation}
    return body


async def _ignore(_: Exception) -> None:
    """The connection breaks on purpose."""


def draw_ms(rng: random.Random) -> int:
    """How long a turn takes: mostly a moment, sometimes long enough to be hit."""
    return rng.randrange(200, 1500) if rng.random() < 0.02 else rng.randrange(0, 30)
