"""The `stream.cluster:` block: embedded brokers of several nodes that form one.

Each node's server is a member. Members know each other by address and prove themselves by a
secret that all nodes share; it comes from the environment or a file, and goes into the server's
configuration only, which nobody but us may read and which is deleted once it was read.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from crewlet.broker.leaf import LEAF_SECRET_VARIABLE
from crewlet.broker.shared_secret import read_secret
from crewlet.broker.tls import TlsSettings, checked_files
from crewlet.errors import ConfigError

SECRET_VARIABLE: Final = "CREWLET_CLUSTER_SECRET"  # noqa: S105 - its name

SIZES: Final = (1, 3, 5)
"""Two members have no majority without each other: either one stops both."""

LOOPBACK: Final = "127.0.0.1"

MEMBER: Final = "crewlet-member"
"""The user that a client on another host dials a member as; its password is the secret."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")
_HOST: Final = re.compile(r"[A-Za-z0-9_.:-]{1,253}")
_HERE: Final = re.compile(r"(127\.|localhost:|\[::1\]).*")
_PEER: Final = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


class ClusterSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`peers` are the `host:port` of all members, this one among them: 1, 3 or 5. `host` and
    `port` are where this one listens for the others. `client_port`, where it is set, is where
    it takes clients of other hosts, and `leaf_port` where it takes leaves (crewlet/broker/leaf.py),
    both on the same host. `secret` is 16 to 256 letters, digits, '-' and '_'; `secret_file` holds
    it instead; so is the leaves', `leaf_secret`. With `tls` members, and leaves, speak it."""

    name: str = "crewlet"
    host: str = LOOPBACK
    port: int = 6222
    client_port: int = 0
    peers: tuple[str, ...] = ()
    secret: str = ""
    secret_file: str = ""
    leaf_port: int = 0
    leaf_secret: str = ""
    leaf_secret_file: str = ""
    tls: TlsSettings | None = None

    def __repr__(self) -> str:
        return f"ClusterSettings(name={self.name!r}, port={self.port}, peers={self.peers!r})"


class Membership(Struct, frozen=True):
    """What one server is told of its cluster. `server` is its name in it, the node's own;
    `leaf_secret` is empty where it takes no leaves."""

    server: str
    settings: ClusterSettings
    secret: str
    leaf_secret: str = ""

    def __repr__(self) -> str:
        return f"Membership(server={self.server!r})"

    @property
    def routed(self) -> bool:
        """There are others. One that waits for routes to nobody would elect no leader."""
        return len(self.settings.peers) > 1

    @property
    def route_password(self) -> str:
        """Derived, so that whoever dials as a client has not the word of a member."""
        return hashlib.sha256(f"route\0{self.secret}".encode()).hexdigest()

    def files(self) -> dict[str, Path]:
        """Of each link that its server reads, what it leads to."""
        return self.settings.tls.paths() if self.settings.tls else {}


def checked_cluster(cluster: ClusterSettings, replicas: int) -> None:
    """ConfigError naming the field that cannot be."""
    if _NAME.fullmatch(cluster.name) is None:
        raise ConfigError("stream.cluster.name: letters, digits, '-' and '_', at most 63")
    if _HOST.fullmatch(cluster.host) is None:
        raise ConfigError("stream.cluster.host is no address: write one, such as 0.0.0.0")
    for peer in cluster.peers:
        found = _PEER.fullmatch(peer)
        if found is None or not 1 <= int(found[2]) <= 65535:
            raise ConfigError(f"stream.cluster.peers: {peer!r} is no host:port")
    members = len(set(cluster.peers))
    if members != len(cluster.peers):
        raise ConfigError("stream.cluster.peers names a member twice")
    if members not in SIZES:
        raise ConfigError(
            f"stream.cluster.peers names {members} members: list every one, this one included; "
            "a cluster has 1, 3 or 5, since two have no majority when either of them stops"
        )
    if replicas > members:
        raise ConfigError(
            f"stream.replicas is {replicas} in a cluster of {members}: name as many peers"
        )
    if members > 1 and replicas == 1:
        raise ConfigError(
            f"stream.replicas is 1 in a cluster of {members}: mail would go with the server that "
            "keeps it; write `replicas: 3`"
        )
    ports = [port for port in (cluster.port, cluster.client_port, cluster.leaf_port) if port]
    if len(set(ports)) < len(ports):
        raise ConfigError(
            "stream.cluster: port, client_port and leaf_port are three doors at one address: give "
            "each a number of its own"
        )
    if cluster.host == LOOPBACK and members > 1 and not any(map(_HERE.fullmatch, cluster.peers)):
        raise ConfigError(
            f"stream.cluster.host is {LOOPBACK}, where no other machine reaches this member, and "
            "no peer is on this one: write its address in their network, or 0.0.0.0; localhost "
            "where something on this machine carries the others here"
        )
    if not cluster.secret and not cluster.secret_file:
        raise ConfigError(
            f"stream.cluster needs a secret that all its nodes share: set {SECRET_VARIABLE}, or "
            "name a file with stream.cluster.secret_file (openssl rand -hex 32)"
        )
    _check_leaves(cluster)


def _check_leaves(cluster: ClusterSettings) -> None:
    stated = bool(cluster.leaf_secret or cluster.leaf_secret_file)
    if cluster.leaf_port and not stated:
        raise ConfigError(
            f"stream.cluster.leaf_port needs a secret that leaves prove themselves by: set "
            f"{LEAF_SECRET_VARIABLE}, or name a file with stream.cluster.leaf_secret_file"
        )
    if cluster.leaf_secret_file and not cluster.leaf_port:
        raise ConfigError(
            "stream.cluster.leaf_secret_file is set, but stream.cluster.leaf_port is not: name the "
            "port where leaves are taken"
        )


def membership(cluster: ClusterSettings, node_id: str) -> Membership:
    """With the secrets read, and the files of `tls` looked at. ConfigError where one cannot be
    used."""
    if cluster.tls is not None:
        checked_files(cluster.tls)
    secret = read_secret(
        cluster.secret,
        cluster.secret_file,
        key="stream.cluster.secret_file",
        variable=SECRET_VARIABLE,
    )
    if not cluster.leaf_port:
        return Membership(node_id, cluster, secret)
    leaves = read_secret(
        cluster.leaf_secret,
        cluster.leaf_secret_file,
        key="stream.cluster.leaf_secret_file",
        variable=LEAF_SECRET_VARIABLE,
    )
    if leaves == secret:
        raise ConfigError(
            "the secret of the leaves is the members' own: whoever has a leaf's host would have "
            f"the word of a member; give {LEAF_SECRET_VARIABLE} another one"
        )
    return Membership(node_id, cluster, secret, leaves)
