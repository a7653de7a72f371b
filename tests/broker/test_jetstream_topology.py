"""The streams: what they keep, and what is refused because it would lose mail."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from actors.delivery import Mailbox
from crewlet import topics
from crewlet.broker import names, topology
from crewlet.broker.api import Api
from crewlet.broker.cluster import ClusterSettings
from crewlet.broker.jetstream import JetStreamBroker
from crewlet.broker.leaf import LeafSettings
from crewlet.broker.settings import StreamSettings, checked
from crewlet.broker.topology import SECOND
from crewlet.coordination.store import CLAIMS
from crewlet.errors import BrokerRefused, ConfigError
from tests.broker.real import box, connected, serving
from tests.broker.servers import plain_server


async def _config(client: JetStreamBroker, stream: str) -> dict[str, Any]:
    config: dict[str, Any] = (await client._api.call(f"STREAM.INFO.{stream}"))["config"]
    return config


@pytest.mark.certifies(27, 28, 29, 30, 31)
def test_the_five_streams(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path, memory=False) as client:
            for stream, retention, subjects, age_s in (
                (names.AGENT, "interest", topics.AGENT, 0),
                (names.NOTIFICATIONS, "interest", topics.NOTIFICATIONS, 0),
                (names.EVENTS, "limits", topics.EVENTS, 30 * 24 * 3600),
                (names.CONFIG, "limits", topics.CONFIG, 3600),
                (names.DLQ, "limits", topics.DEAD_LETTERS, 30 * 24 * 3600),
            ):
                config = await _config(client, stream)
                assert config["retention"] == retention
                assert config["subjects"] == [subjects]
                assert config["max_age"] == age_s * SECOND
                assert config["storage"] == "file"
                assert config["max_consumers"] > 1000

    asyncio.run(play())


@pytest.mark.certifies(29)
def test_the_age_of_events_is_a_setting(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            client = JetStreamBroker(real.server.address, event_retention_hours=2)
            await client.start()
            for stream in (names.EVENTS, names.DLQ):
                assert (await _config(client, stream))["max_age"] == 2 * 3600 * SECOND
            await client.stop()
            # Another age is a matter of capacity: it is reported, and nothing is rewritten.
            client = JetStreamBroker(real.server.address)
            await client.start()
            assert (await _config(client, names.EVENTS))["max_age"] == 2 * 3600 * SECOND
            await client.stop()

    asyncio.run(play())


@pytest.mark.certifies(32)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("retention", "limits"),
        ("storage", "memory"),
        ("max_msgs", 10),
        ("max_bytes", 1000),
        ("max_age", 60 * SECOND * 10),
        ("max_msg_size", 1000),
        ("max_msgs_per_subject", 1),
        ("no_ack", True),
        ("discard", "new"),
    ],
)
def test_a_stream_that_would_lose_mail_is_refused_by_name(
    tmp_path: Path, field: str, value: object
) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            client = real.client()
            await client._wire.open(5)
            wanted = client._topology.streams()[0]
            await client._api.call(f"STREAM.CREATE.{names.AGENT}", wanted | {field: value})
            before = await _config(client, names.AGENT)
            with pytest.raises(BrokerRefused, match=f"{names.AGENT} has {field}"):
                await client.start()
            await client._wire.open(5)
            assert await _config(client, names.AGENT) == before
            await client._wire.close()

    asyncio.run(play())


@pytest.mark.certifies(32)
def test_fewer_replicas_than_configured_are_refused() -> None:
    wanted = topology.Topology(
        Api.__new__(Api), memory=False, replicas=3, event_retention_hours=1
    ).streams()[0]
    with pytest.raises(BrokerRefused, match="num_replicas 1"):
        topology.compare(wanted, wanted | {"num_replicas": 1})
    topology.compare(wanted, wanted | {"num_replicas": 5})


@pytest.mark.certifies(32)
def test_a_fleet_that_boots_at_once_makes_each_stream_once(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as real:
            clients = [real.client(f"n{at}") for at in range(6)]
            await asyncio.gather(*(client.start() for client in clients))
            made = await asyncio.gather(*(client.ensure(box()) for client in clients))
            assert made.count(True) >= 1
            assert len(await clients[0].list(">")) == 1
            await asyncio.gather(*(client.stop() for client in clients))

    asyncio.run(play())


@pytest.mark.certifies(25, 26)
def test_a_namespace_of_nobody_gets_a_stream_on_demand(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path, memory=False) as client:
            receipt = await client.publish("crewlet.custom.a", b"x", message_id="1")
            assert receipt.position == 1
            config = await _config(client, "CREWLET_NS_CUSTOM")
            assert config["retention"] == "interest"
            mailbox = Mailbox("crewlet.custom.a", "group")
            await client.ensure(mailbox)
            await client.publish("crewlet.custom.a", b"y", message_id="2")
            (delivery,) = await client.fetch(await client.attach(mailbox, 1), 5, 5.0)
            assert delivery.body == b"y"
            for topic in ("other.a", "single", "crewlet.two", "agent.x", "dlq", "crewlet.dlq.x"):
                await client.publish(topic, b"x", message_id=topic)
            for alias in ("crewlet.Custom.a", "crewlet.cus-tom.a", "UPPER.a"):
                with pytest.raises(ValueError, match="namespace"):
                    await client.publish(alias, b"x", message_id="x")
            for wrong in ("", "a..b", "crewlet.agent.*.inbox", "crewlet.agent.>", "a b.c"):
                with pytest.raises(ValueError):
                    await client.publish(wrong, b"x", message_id="x")

    asyncio.run(play())


@pytest.mark.certifies(25)
def test_a_stream_on_demand_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            mailbox = Mailbox("crewlet.custom.a", "group")
            assert await client.ensure(mailbox)
            await client._api.call("STREAM.DELETE.CREWLET_NS_CUSTOM")
            assert await client.ensure(mailbox)

    asyncio.run(play())


@pytest.mark.certifies(16, 43)
def test_the_durable_of_a_mailbox(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path, memory=False) as client:
            mailbox = box()
            await client.ensure(mailbox)
            name = names.consumer(mailbox)
            assert name == f"agent-dev__crewlet_agent_dev_inbox__{topics.digest(mailbox)}"
            info = await client._api.call(f"CONSUMER.INFO.{names.AGENT}.{name}")
            config = info["config"]
            assert config["ack_policy"] == "explicit"
            assert config["ack_wait"] == 1800 * SECOND
            assert config["max_deliver"] > 25
            assert config["filter_subject"] == mailbox.topic
            assert config["metadata"]["topic"] == mailbox.topic
            assert config["metadata"]["group"] == mailbox.group
            long = Mailbox(f"crewlet.agent.{'x' * 63}.inbox", "g" * 180)
            await client.ensure(long)
            assert len(names.consumer(long)) <= 180 + 2 + 12
            assert [state.mailbox for state in await client.list(long.topic)] == [long]

    asyncio.run(play())


@pytest.mark.certifies(278)
def test_what_a_dead_router_held_comes_back_soon(tmp_path: Path) -> None:
    """Several nodes read it: nobody could reclaim there."""

    async def play() -> None:
        async with connected(tmp_path) as client:
            await client.ensure(topics.inbound())
            info = await client._mailboxes.info(topics.inbound())
            assert info is not None
            assert info["config"]["ack_wait"] == 20 * SECOND

    asyncio.run(play())


@pytest.mark.certifies(43)
def test_a_durable_that_is_nobody_s_is_left_out_of_the_list(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            await client.ensure(box())
            for name, metadata in (("stray", {}), ("liar", {"topic": box().topic, "group": "x"})):
                config = {
                    "durable_name": name,
                    "ack_policy": "explicit",
                    "filter_subject": box().topic,
                    "metadata": metadata,
                }
                await client._api.call(
                    f"CONSUMER.CREATE.{names.AGENT}.{name}.{box().topic}",
                    {"stream_name": names.AGENT, "config": config, "action": "create"},
                )
            assert [state.mailbox for state in await client.list(">")] == [box()]

    asyncio.run(play())


@pytest.mark.certifies(43)
def test_a_list_is_whole_over_many_pages(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path) as client:
            handles = [f"seat-{at:04}" for at in range(600)]
            for start in range(0, 600, 50):
                await asyncio.gather(
                    *(client.ensure(box(handle)) for handle in handles[start : start + 50])
                )
            listed = await client.list(topics.INBOXES)
            assert [state.mailbox for state in listed] == sorted(box(one) for one in handles)

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.certifies(8, 14)
def test_a_server_with_a_small_payload_is_refused_by_setting_and_number(tmp_path: Path) -> None:
    async def play() -> None:
        async with plain_server(tmp_path, "jetstream {}") as address:
            with pytest.raises(BrokerRefused, match="max_payload") as refusal:
                await JetStreamBroker(address).start()
            assert str(8 * 1024 * 1024) in str(refusal.value)

    asyncio.run(play())


@pytest.mark.certifies(8)
def test_a_server_without_jetstream_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crewlet.broker.jetstream.PROBE_S", 0.2)

    async def play() -> None:
        async with plain_server(tmp_path, "max_payload: 8650752") as address:
            with pytest.raises(BrokerRefused, match="JetStream"):
                await JetStreamBroker(address).start()

    asyncio.run(play())


def test_buckets_keep_one_value_for_their_age(tmp_path: Path) -> None:
    async def play() -> None:
        async with connected(tmp_path, memory=False) as client:
            config = await _config(client, names.bucket(CLAIMS.name))
            assert config["max_age"] == 300 * SECOND
            assert config["max_msgs_per_subject"] == 1
            assert not config.get("allow_direct")

    asyncio.run(play())


THREE = ("a:6222", "10.0.0.2:6222", "[::1]:6222")


def _clustered(
    *peers: str, replicas: int = 3, name: str = "c", host: str = "::1", secret: str = "s" * 32
) -> StreamSettings:
    cluster = ClusterSettings(name=name, host=host, peers=peers, secret=secret)
    return StreamSettings(replicas=replicas, cluster=cluster)


def _ported(client_port: int, leaf_port: int = 0) -> StreamSettings:
    secret, leaves = "s" * 32, "t" * 32
    cluster = ClusterSettings(
        peers=THREE,
        secret=secret,
        client_port=client_port,
        leaf_port=leaf_port,
        leaf_secret=leaves,
    )
    return StreamSettings(replicas=3, cluster=cluster)


def _unhosted(*peers: str) -> StreamSettings:
    return StreamSettings(replicas=3, cluster=ClusterSettings(peers=peers, secret="s" * 32))


LEAF = LeafSettings(urls=("a:1", "b:1"), secret="s" * 32)


@pytest.mark.certifies(3, 8, 9)
@pytest.mark.parametrize(
    ("settings", "word"),
    [
        (StreamSettings(type="nats"), "url"),
        (StreamSettings(type="nats", url="http://secret@x"), "url"),
        (StreamSettings(url="nats://a"), "url"),
        (StreamSettings(type="memory", store_dir="x"), "store_dir"),
        (StreamSettings(replicas=3), "replicas"),
        (StreamSettings(type="nats", url="nats://a", replicas=2), "replicas"),
        (StreamSettings(event_retention_hours=0), "event_retention_hours"),
        (_clustered("a:1", "b:1"), "1, 3 or 5"),
        (_clustered("a:1", "b:1", "c:1", "d:1"), "1, 3 or 5"),
        (_clustered(), "1, 3 or 5"),
        (_clustered("a:1", "b:1", "b:1"), "twice"),
        (_clustered("a:1", "b:1", "c"), "no host:port"),
        (_clustered("a:1", "b:1", "c:70000"), "no host:port"),
        (_clustered("a:1", replicas=3), "replicas"),
        (_clustered(*THREE, replicas=1), "replicas: 3"),
        (_clustered(*THREE, name='x"y'), "cluster.name"),
        (_clustered(*THREE, host='x"y'), "cluster.host"),
        (_ported(client_port=6222), "three doors"),
        (_ported(client_port=1, leaf_port=1), "three doors"),
        (_unhosted("a:1", "b:1", "10.0.0.3:1"), "cluster.host is .* write its address"),
        (StreamSettings(leaf=LEAF), "names 2 members: write `replicas: 3`"),
        (StreamSettings(type="memory", cluster=ClusterSettings(peers=THREE)), "cluster"),
        (StreamSettings(store_dir="", replicas=3, cluster=ClusterSettings()), "store_dir"),
    ],
    ids=str,
)
def test_settings_that_contradict_each_other(settings: StreamSettings, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as refusal:
        checked(settings)
    assert "secret" not in str(refusal.value)


def test_a_cluster_without_a_secret_says_how_to_get_one() -> None:
    with pytest.raises(ConfigError, match="CREWLET_CLUSTER_SECRET"):
        checked(_clustered(*THREE, secret=""))


def test_settings_that_do_not() -> None:
    for settings in (
        StreamSettings(),
        StreamSettings(store_dir="store", sync="interval"),
        StreamSettings(type="memory"),
        StreamSettings(type="nats", url="nats://u:p@a:4222, tls://b", replicas=3),
        _clustered(*THREE),
        _clustered("a:1", replicas=1),
        _clustered(*THREE, "d:1", "e:1"),
        _ported(client_port=4222, leaf_port=7422),
        _clustered("a:1", "b:1", "c:1", host="localhost"),
        _unhosted("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"),
        _unhosted("[::1]:1", "[::1]:2", "[::1]:3"),
        StreamSettings(leaf=LEAF, replicas=3),
        StreamSettings(leaf=LeafSettings(urls=("a:1",), secret="s" * 32)),
    ):
        assert checked(settings) is settings
