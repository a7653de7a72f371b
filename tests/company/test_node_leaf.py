"""A node file that makes a leaf, members that take leaves, and what contradicts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.company.node_file import load_node_settings
from crewlet.errors import ConfigError

LEAF = "stream:\n  replicas: 3\n  leaf:\n    urls: [10.0.0.1:7422, '${B}:7422']\n"
MEMBER = (
    "stream:\n  replicas: 3\n  cluster:\n    leaf_port: 7422\n"
    "    peers: [127.0.0.1:6222, b:6222, c:6222]\n"
)
ENV = {
    "B": "b",
    "CREWLET_NODE_ID": "edge-1",
    "CREWLET_CLUSTER_SECRET": "0123456789abcdef",
    "CREWLET_LEAF_SECRET": "fedcba9876543210",
}


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "node.yaml"
    file.write_text(text)
    return file


@pytest.mark.certifies(10)
def test_a_leaf_and_where_its_secret_comes_from(tmp_path: Path) -> None:
    for roles in ("", "node: {roles: [seats, ingress]}\n"):
        stream = load_node_settings(written(tmp_path, LEAF + roles), env=ENV).stream
        assert stream.leaf is not None
        assert stream.leaf.urls == ("10.0.0.1:7422", "b:7422")
        assert stream.leaf.secret == ENV["CREWLET_LEAF_SECRET"] not in repr(stream)
        assert not stream.folder and not stream.alone
    file = written(tmp_path, LEAF + "    secret_file: /etc/leaf\n    ca: /etc/ca.pem\n")
    leaf = load_node_settings(file, env=ENV).stream.leaf
    assert leaf is not None
    assert (leaf.secret, leaf.secret_file, leaf.ca) == ("", "/etc/leaf", "/etc/ca.pem")


@pytest.mark.certifies(9, 10)
def test_a_member_that_takes_leaves_over_tls(tmp_path: Path) -> None:
    tls = "    tls: {cert: /etc/a.pem, key: /etc/a.key, ca: /etc/ca.pem}\n"
    cluster = load_node_settings(written(tmp_path, MEMBER + tls), env=ENV).stream.cluster
    assert cluster is not None and cluster.tls is not None
    assert (cluster.leaf_port, cluster.tls.key) == (7422, "/etc/a.key")
    assert cluster.leaf_secret == ENV["CREWLET_LEAF_SECRET"] != cluster.secret


@pytest.mark.certifies(9, 10)
@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        (LEAF + "  store_dir: here\n", "leave it out; the members keep all mail"),
        (LEAF + "  type: memory\n", "leave stream.type out"),
        (LEAF + "  cluster: {peers: [a:1]}\n", "leave one of them out"),
        (LEAF + "node: {roles: [data, seats]}\n", "leave data out, or write stream.cluster"),
        ("node: {roles: [seats]}\n", r"add data, or make this node a leaf .*stream\.leaf\.urls"),
        ("stream: {leaf: {}}\n", "urls is needed|'urls' is missing|urls"),
        ("stream: {leaf: {urls: []}}\n", "name the members' host:leaf_port"),
        ("stream: {leaf: {urls: ['nats://u:hidden@h:1']}}\n", "each is a host:port"),
        (LEAF.replace("  replicas: 3\n", ""), "names 2 members: write `replicas: 3`"),
        (MEMBER + "    tls: {cert: a, key: b}\n", "ca"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(
    tmp_path: Path, text: str, way_out: str
) -> None:
    with pytest.raises(ConfigError, match=way_out) as refused:
        load_node_settings(written(tmp_path, text), env=ENV)
    assert "hidden" not in str(refused.value)


@pytest.mark.certifies(10)
def test_a_leaf_has_a_name_of_its_own(tmp_path: Path) -> None:
    """Two of one name would take each other's place at the members."""
    env = {word: value for word, value in ENV.items() if word != "CREWLET_NODE_ID"}
    with pytest.raises(ConfigError, match=r"node\.id: each node of a cluster"):
        load_node_settings(written(tmp_path, LEAF), env=env)


@pytest.mark.certifies(10)
@pytest.mark.parametrize("text", [LEAF, MEMBER])
def test_neither_does_without_the_leaves_secret(tmp_path: Path, text: str) -> None:
    env = {word: value for word, value in ENV.items() if "LEAF" not in word}
    with pytest.raises(ConfigError, match="CREWLET_LEAF_SECRET"):
        load_node_settings(written(tmp_path, text), env=env)
