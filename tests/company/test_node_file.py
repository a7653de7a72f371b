"""The node file: the same rules, the node's own keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import astuple

from actors.machines.timing import Timing
from crewlet.broker.cluster import ClusterSettings
from crewlet.broker.leaf import LeafSettings
from crewlet.broker.settings import StreamSettings
from crewlet.company import (
    NodeIdentity,
    NodeSettings,
    check_node_settings,
    checked_settings,
    load_node_settings,
    parse_company,
)
from crewlet.errors import ConfigError
from crewlet.node import Node


def written(folder: Path, text: str) -> Path:
    file = folder / "node.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("text", [None, "", "# nothing yet\n", "stream:\nnode:\n"])
def test_everything_has_a_default(tmp_path: Path, text: str | None) -> None:
    settings = load_node_settings(None if text is None else written(tmp_path, text), env={})
    assert settings == NodeSettings()
    assert (settings.api.host, settings.api.port, settings.node.id) == ("127.0.0.1", 8400, "node-0")
    assert settings.drain_timeout_s == 30.0 and settings.stream.type == "embedded"


def test_all_keys(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "debug: true\ndrain_timeout_s: 5\n"
        "stream: {type: nats, url: 'nats://${HOST}:4222', replicas: 3, event_retention_hours: 48}\n"
        "api: {host: 0.0.0.0, port: 0}\n"
        "node: {id: node-7, max_concurrent: 2, labels: {zone: east}, roles: [seats, workers]}\n"
        "lease: {ttl_s: 40, renew_s: 8, margin_s: 5}\n",
    )
    settings = load_node_settings(file, env={"HOST": "broker", "CREWLET_NODE_ID": "other"})
    assert settings.debug and settings.drain_timeout_s == 5
    assert settings.stream.url == "nats://broker:4222"
    assert (settings.stream.replicas, settings.stream.event_retention_hours) == (3, 48)
    assert (settings.api.host, settings.api.port) == ("0.0.0.0", 0)
    assert (settings.node.id, settings.node.max_concurrent) == ("node-7", 2)
    assert (settings.node.labels, settings.node.roles) == ({"zone": "east"}, ("seats", "workers"))
    assert settings.lease == Timing(
        ttl_s=40, renew_s=8, margin_s=5, confirm_s=9.6, sweep_s=10, stand_back_s=4
    )


@pytest.mark.parametrize(
    ("given", "timing"),
    [
        ("{}", Timing()),
        ("{ttl_s: 20}", Timing()),
        (
            "{ttl_s: 3}",
            Timing(
                ttl_s=3, renew_s=0.75, margin_s=0.45, confirm_s=0.9, sweep_s=0.75, stand_back_s=0.3
            ),
        ),
        ("{renew_s: 4}", Timing(renew_s=4, confirm_s=4.8)),
        ("{margin_s: 0.5}", Timing(margin_s=0.5)),
    ],
)
def test_what_a_lease_does_not_say_follows_from_what_it_says(
    tmp_path: Path, given: str, timing: Timing
) -> None:
    lease = load_node_settings(written(tmp_path, f"lease: {given}\n"), env={}).lease
    assert astuple(lease) == pytest.approx(astuple(timing))


def test_the_name_may_come_from_the_environment(tmp_path: Path) -> None:
    assert load_node_settings(None, env={"CREWLET_NODE_ID": "blue"}).node.id == "blue"
    with pytest.raises(ConfigError, match=r"node.id: 'a.b' in CREWLET_NODE_ID is no name"):
        load_node_settings(None, env={"CREWLET_NODE_ID": "a.b"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("strem: {}\n", "1:1: strem: unknown key 'strem'; did you mean 'stream'?"),
        (
            "api: {port: 65536}\n",
            "1:13: api.port: a whole number from 0 to 65535 is needed here; "
            "read as the text '65536'",
        ),
        (
            "debug: yes\n",
            "1:8: debug: true or false is needed here; read as the text 'yes'",
        ),
        (
            "stream:\n  type: kafka\n",
            "2:9: stream.type: embedded or nats or memory is needed here; read as the text 'kafka'",
        ),
        (
            "stream:\n  type: nats\n",
            "2:3: stream: stream.type is nats, but stream.url is empty: name the server",
        ),
        (
            "node: {id: a.b}\n",
            "1:12: node.id: 'a.b' is no name for a node: "
            "small letters, digits, '-' and '_', at most 63",
        ),
        (
            "node:\n  roles: [seats, worker]\n",
            "2:18: node.roles[1]: data or ingress or seats or workers is needed here; "
            "read as the text 'worker'; did you mean 'workers'?",
        ),
        (
            "lease:\n  ttl_s: 10\n  renew_s: 5\n",
            "2:3: lease: ttl_s - margin_s is 8.5: it must outlast two renewals of 5 s, "
            "or one that is lost ends the session",
        ),
        (
            "lease: {renew_s: 0}\n",
            "1:18: lease.renew_s: a number from 0.05 to 3600 is needed here; read as the text '0'",
        ),
        (
            "lease: {ttl_s: 4000, renew_s: 15}\n",
            "1:16: lease.ttl_s: a number from 0.5 to 3600 is needed here; read as the text '4000'",
        ),
    ],
)
def test_problems_have_their_place(tmp_path: Path, text: str, problem: str) -> None:
    file = written(tmp_path, text)
    assert [str(each) for each in check_node_settings(file, env={})] == [f"{file}:{problem}"]
    with pytest.raises(ConfigError):
        load_node_settings(file, env={})


OF_A_CLUSTER = {"CREWLET_CLUSTER_SECRET": "0123456789abcdef", "CREWLET_NODE_ID": "node-1"}
CLUSTER = (
    "stream:\n  replicas: 3\n  cluster:\n    name: acme\n    port: 6301\n    client_port: 4301\n"
    "    peers: [127.0.0.1:6301, '${B}:6301', c:6301]\n"
)


@pytest.mark.certifies(9)
def test_a_cluster_and_where_its_secret_comes_from(tmp_path: Path) -> None:
    env = {"B": "b", **OF_A_CLUSTER}
    cluster = load_node_settings(written(tmp_path, CLUSTER), env=env).stream.cluster
    assert cluster is not None
    assert cluster.peers == ("127.0.0.1:6301", "b:6301", "c:6301")
    assert (cluster.host, cluster.port, cluster.client_port) == ("127.0.0.1", 6301, 4301)
    assert cluster.secret == env["CREWLET_CLUSTER_SECRET"] and not cluster.secret_file
    file = written(tmp_path, CLUSTER + "    secret_file: /etc/secret\n")
    cluster = load_node_settings(file, env=env).stream.cluster
    assert cluster is not None and (cluster.secret, cluster.secret_file) == ("", "/etc/secret")


@pytest.mark.certifies(9)
def test_a_cluster_that_cannot_be_is_refused_with_its_place(tmp_path: Path) -> None:
    env = {"B": "b", **OF_A_CLUSTER}
    two = CLUSTER.replace(", c:6301", "")
    with pytest.raises(ConfigError, match=r"2:3: stream: .*two have no majority"):
        load_node_settings(written(tmp_path, two), env=env)
    with pytest.raises(ConfigError, match="CREWLET_CLUSTER_SECRET"):
        load_node_settings(written(tmp_path, CLUSTER), env={"B": "b"})
    with pytest.raises(ConfigError, match="unknown key 'secret'"):
        load_node_settings(written(tmp_path, CLUSTER + "    secret: x\n"), env=env)
    with pytest.raises(ConfigError, match=r"2:3: stream: .*three doors"):
        load_node_settings(written(tmp_path, CLUSTER + "    leaf_port: 4301\n"), env=env)


@pytest.mark.certifies(9)
def test_a_member_has_a_name_of_its_own(tmp_path: Path) -> None:
    """The name that a node has without being told is every node's."""
    env = {"B": "b", "CREWLET_CLUSTER_SECRET": "0123456789abcdef"}
    with pytest.raises(ConfigError, match=r"node\.id: each node .*CREWLET_NODE_ID"):
        load_node_settings(written(tmp_path, CLUSTER), env=env)
    with pytest.raises(ConfigError, match=r"8:7: node\.id: each node"):
        load_node_settings(written(tmp_path, CLUSTER + "node: {max_concurrent: 4}\n"), env=env)
    named = load_node_settings(written(tmp_path, CLUSTER + "node: {id: n1}\n"), env=env)
    assert named.node.id == "n1"
    with pytest.raises(ConfigError, match=r"8:12: node\.id: each node"):
        load_node_settings(written(tmp_path, CLUSTER + "node: {id: node-0}\n"), env=env)
    alone = "stream: {cluster: {peers: [a:6222]}}\n"
    assert load_node_settings(written(tmp_path, alone), env=env).node.id == "node-0"


MEMBER = StreamSettings(
    replicas=3,
    cluster=ClusterSettings(
        peers=("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"), port=1, secret="s" * 32
    ),
)
LEAF = StreamSettings(leaf=LeafSettings(urls=("a:1",), secret="s" * 32))


@pytest.mark.parametrize("stream", [MEMBER, LEAF], ids=["member", "leaf"])
def test_a_name_of_its_own_is_all_that_was_missing(stream: StreamSettings) -> None:
    settings = NodeSettings(stream=stream, node=NodeIdentity(id="n1"))
    assert checked_settings(settings) is settings
    unnamed = NodeSettings(stream=stream)
    assert checked_settings(unnamed, own_broker=False) is unnamed


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (NodeSettings(node=NodeIdentity(id="a.b")), r"node\.id: 'a\.b' is no name"),
        (NodeSettings(node=NodeIdentity(roles=("seat",))), r"node\.roles: 'seat' is none of data"),
        (NodeSettings(node=NodeIdentity(labels={"a-b": "x"})), r"node\.labels: 'a-b' is no name"),
        (NodeSettings(node=NodeIdentity(max_concurrent=0)), "no turn would start"),
        (NodeSettings(drain_timeout_s=-1.0), "drain_timeout_s is -1.0"),
        (NodeSettings(drain_timeout_s=float("nan")), "drain_timeout_s is nan"),
        (NodeSettings(node=NodeIdentity(roles=("seats",))), "add data"),
        (NodeSettings(stream=StreamSettings(type="nats")), "name the server"),
        (NodeSettings(stream=StreamSettings(replicas=3)), "needs a cluster"),
        (NodeSettings(stream=MEMBER), r"node\.id: each node .*CREWLET_NODE_ID"),
        (NodeSettings(stream=LEAF), r"node\.id: each node .*CREWLET_NODE_ID"),
    ],
    ids=str,
)
def test_settings_that_came_from_no_file_are_held_to_the_same(
    settings: NodeSettings, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        Node(parse_company("name: c\nroles: [{name: Dev, handle: dev}]\n"), settings=settings)


def test_a_node_that_is_given_its_broker_is_not_asked_about_one() -> None:
    settings = NodeSettings(node=NodeIdentity(roles=("seats",)))
    assert checked_settings(settings, own_broker=False) is settings


FLEET = Path(__file__).parents[2] / "examples" / "fleet"


@pytest.mark.certifies(9)
def test_the_nodes_of_the_fleet_example_are_members_of_one_cluster() -> None:
    env = {"CREWLET_CLUSTER_SECRET": "0123456789abcdef"}
    nodes = [load_node_settings(FLEET / f"node-{at}.yaml", env=env) for at in (1, 2, 3)]
    clusters = [node.stream.cluster for node in nodes if node.stream.cluster is not None]
    assert len({node.node.id for node in nodes}) == len({node.api.port for node in nodes}) == 3
    assert len({(cluster.name, cluster.peers) for cluster in clusters}) == 1
    assert {f"127.0.0.1:{cluster.port}" for cluster in clusters} == set(clusters[0].peers)
    hosts = {f"HOST_{at}": f"10.0.0.{at}" for at in (1, 2, 3)}
    apart = load_node_settings(FLEET / "hosts" / "node.yaml", env={"NODE_ID": "node-2", **hosts})
    assert apart.node.id == "node-2" and apart.stream.cluster is not None
    assert apart.stream.cluster.peers == ("10.0.0.1:6222", "10.0.0.2:6222", "10.0.0.3:6222")
