"""A leaf of three members: nothing acknowledged is lost when the one it is linked to dies."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from crewlet.broker.leaf import LeafSettings
from crewlet.broker.opening import LeafBroker, open_broker
from crewlet.broker.settings import StreamSettings
from crewlet.coordination.store import LEASES
from crewlet.errors import StoreUnavailable
from tests.broker.cluster import Cluster, answered
from tests.broker.leaves import LEAF_SECRET
from tests.broker.real import box, done, eventually, until

MESSAGES = 60

pytestmark = pytest.mark.long


async def _leaf_of(cluster: Cluster, folder: Path) -> LeafBroker:
    urls = tuple(f"127.0.0.1:{port}" for port in cluster.leaf_ports)
    leaf = LeafSettings(urls=urls, secret=LEAF_SECRET)
    settings = StreamSettings(leaf=leaf, replicas=3)
    broker = await open_broker(settings, node_id="edge", data_dir=folder)
    assert isinstance(broker, LeafBroker)
    return broker


def _linked_to(cluster: Cluster, leaf: LeafBroker) -> int:
    """The member that the leaf's server dialed last."""
    dialed = re.findall(
        r":(\d+) - lid:\d+ - Leafnode connection created", leaf._server.log.read_text()
    )
    return cluster.leaf_ports.index(int(dialed[-1]))


async def _kill(cluster: Cluster, at: int) -> None:
    """kill -9; returns when its supervisor has another one up."""
    pid = cluster.servers[at].pid
    cluster.kill(at)
    await until(lambda: cluster.servers[at].pid != pid and cluster.servers[at].ready, 30.0)


async def _publish(leaf: LeafBroker, number: int) -> None:
    body, id = b"%03d" % number, f"edge/{number}"
    await answered(lambda: leaf.publish(box("edge").topic, body, message_id=id))


async def _written(leaf: LeafBroker) -> bool:
    try:
        await leaf.store.put(LEASES, "seat.x", b"last")
    except StoreUnavailable:
        return False
    return True


@pytest.mark.certifies(9, 10, 48)
def test_every_member_in_turn_is_killed_under_a_leaf(tmp_path: Path) -> None:
    """What was published over the leaf is there, each message once by its position, and is worked
    over the leaf; a row that was written has its last value."""

    async def play() -> None:
        cluster = Cluster(tmp_path, leaf_secret=LEAF_SECRET)
        await cluster.start()
        leaf = await _leaf_of(cluster, tmp_path / "edge")
        try:
            mailbox = box("edge")
            await leaf.ensure(mailbox)
            attachment = await leaf.attach(mailbox, 1)
            for number in range(MESSAGES):
                if number % 20 == 10:
                    await _kill(cluster, _linked_to(cluster, leaf))
                await _publish(leaf, number)
            seen: dict[int, str] = {}
            async with asyncio.timeout(90):
                while len(seen) < MESSAGES:
                    taken = list(await answered(lambda: leaf.fetch(attachment, 20, 3.0)))
                    seen |= {one.position: one.body.decode() for one in taken}
                    await leaf.settle(done(taken))
            assert sorted(seen.values()) == [f"{number:03}" for number in range(MESSAGES)]
            await eventually(lambda: _written(leaf), 60)
            member = cluster.client(0)
            await member.start()
            entry = await member.store.get(LEASES, "seat.x")
            assert entry is not None and entry.value == b"last"
            await member.stop()
        finally:
            await leaf.stop()
            await cluster.stop()

    asyncio.run(asyncio.wait_for(play(), 240))
