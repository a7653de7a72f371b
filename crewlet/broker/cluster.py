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

from crewlet.errors import ConfigError

SECRET_VARIABLE: Final = "CREWLET_CLUSTER_SECRET"  # noqa: S105 - its name

SIZES: Final = (1, 3, 5)
"""Two members have no majority without each other: either one stops both."""

MEMBER: Final = "crewlet-member"
"""The user that a node without data of its own dials a member as; its password is the secret."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")
_HOST: Final = re.compile(r"[A-Za-z0-9_.:-]{1,253}")
_PEER: Final = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{16,256}")


class ClusterSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`peers` are the `host:port` of all members, this one among them: 1, 3 or 5. `host` and
    `port` are where this one listens for the others. `client_port`, where it is set, is where
    it takes nodes without data of their own, on the same host. `secret` is 16 to 256 letters,
    digits, '-' and '_'; `secret_file` holds it instead."""

    name: str = "crewlet"
    host: str = "127.0.0.1"
    port: int = 6222
    client_port: int = 0
    peers: tuple[str, ...] = ()
    secret: str = ""
    secret_file: str = ""

    def __repr__(self) -> str:
        return f"ClusterSettings(name={self.name!r}, port={self.port}, peers={self.peers!r})"


class Membership(Struct, frozen=True):
    """What one server is told of its cluster. `server` is its name in it, the node's own."""

    server: str
    settings: ClusterSettings
    secret: str

    def __repr__(self) -> str:
        return f"Membership(server={self.server!r})"

    @property
    def route_password(self) -> str:
        """Derived, so that whoever dials as a client has not the word of a member."""
        return hashlib.sha256(f"route\0{self.secret}".encode()).hexdigest()


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
    if not cluster.secret and not cluster.secret_file:
        raise ConfigError(
            f"stream.cluster needs a secret that all its nodes share: set {SECRET_VARIABLE}, or "
            "name a file with stream.cluster.secret_file (openssl rand -hex 32)"
        )


def membership(cluster: ClusterSettings, node_id: str) -> Membership:
    """With the secret read. ConfigError where there is none that can be used."""
    secret = cluster.secret or _read(Path(cluster.secret_file))
    if _SECRET.fullmatch(secret) is None:
        raise ConfigError(
            f"the secret of the cluster ({cluster.secret_file or SECRET_VARIABLE}) must be 16 to "
            "256 letters, digits, '-' and '_': openssl rand -hex 32 makes one"
        )
    return Membership(node_id, cluster, secret)


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"others may read stream.cluster.secret_file {path}: chmod 600 it")
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"stream.cluster.secret_file {path} cannot be read: {type(error).__name__}"
        ) from None
