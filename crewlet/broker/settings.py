"""The `stream:` block of a node's settings: where the broker runs and how durable it is."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from crewlet.broker.cluster import ClusterSettings, checked_cluster
from crewlet.broker.leaf import LeafSettings, checked_leaf
from crewlet.errors import ConfigError

Kind = Literal["embedded", "nats", "memory"]
Sync = Literal["always", "interval"]

EVENT_RETENTION_HOURS: Final = 720
"""30 days (docs/contract.md 29)."""


STORE: Final = "stream"
"""Below the data folder: a company's mail survives a restart unless somebody asks otherwise."""


class StreamSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`type` decides who runs the broker; everything above it is the same for all three.

    `store_dir` is where an embedded broker keeps its files: `stream` below the node's data
    folder unless told, a relative path starts there too; empty keeps mail in memory. `sync` is
    `always` (an acknowledged write is on the disk) or `interval` (every two minutes,
    nats-server's own default: faster, and a power loss takes what was acknowledged since).
    `url` belongs to `type: nats`; several
    servers are separated by commas. `replicas` is how many of them hold each message. With
    `cluster` the embedded brokers of several nodes are one, with `leaf` this one's keeps nothing
    and carries to theirs (docs/guide/fleet.md).
    """

    type: Kind = "embedded"
    store_dir: str | None = None
    sync: Sync = "always"
    url: str = ""
    replicas: int = 1
    event_retention_hours: int = EVENT_RETENTION_HOURS
    cluster: ClusterSettings | None = None
    leaf: LeafSettings | None = None

    @property
    def folder(self) -> str:
        """Where an embedded broker keeps its files; empty where it keeps none."""
        if self.leaf is not None:
            return ""
        return STORE if self.store_dir is None else self.store_dir

    @property
    def alone(self) -> bool:
        """Nobody else can reach this broker: it is in this process, or its child's own."""
        return self.type != "nats" and self.cluster is None and self.leaf is None


def checked(settings: StreamSettings) -> StreamSettings:
    """The settings themselves; ConfigError naming the field that contradicts another."""
    _check_place(settings)
    _check_url(settings.url)
    if not 1 <= settings.event_retention_hours <= 24 * 3650:
        raise ConfigError(
            f"stream.event_retention_hours is {settings.event_retention_hours}: "
            "write a number of hours from 1 to 87600 (ten years)"
        )
    if settings.replicas not in (1, 3, 5):
        raise ConfigError(
            f"stream.replicas is {settings.replicas}: a quorum needs 1, 3 or 5 servers"
        )
    return settings


def _check_place(settings: StreamSettings) -> None:
    if settings.type == "nats" and not settings.url:
        raise ConfigError("stream.type is nats, but stream.url is empty: name the server")
    if settings.type != "nats" and settings.url:
        raise ConfigError(f"stream.url is set, but stream.type is {settings.type}: it dials nobody")
    if settings.type != "embedded" and settings.store_dir:
        raise ConfigError(
            f"stream.store_dir is set, but stream.type is {settings.type}: "
            "only an embedded broker keeps files"
        )
    if settings.leaf is not None:
        _check_leaf(settings, settings.leaf)
    elif settings.cluster is not None:
        _check_cluster(settings, settings.cluster)
    elif settings.type != "nats" and settings.replicas != 1:
        raise ConfigError(
            "stream.replicas needs a cluster: write stream.cluster with its peers, stream.leaf "
            "with the members' addresses, or set stream.type to nats"
        )


def _check_leaf(settings: StreamSettings, leaf: LeafSettings) -> None:
    if settings.type != "embedded":
        raise ConfigError(
            f"stream.leaf is set, but stream.type is {settings.type}: a leaf is an embedded "
            "server; leave stream.type out"
        )
    if settings.cluster is not None:
        raise ConfigError(
            "stream.leaf and stream.cluster are both set: a leaf keeps no streams and is no "
            "member; leave one of them out"
        )
    if settings.store_dir is not None:
        raise ConfigError(
            "stream.store_dir is set, but a leaf (stream.leaf) keeps no streams: leave it out; "
            "the members keep all mail"
        )
    checked_leaf(leaf)
    if settings.replicas == 1 and len(leaf.urls) > 1:
        raise ConfigError(
            f"stream.replicas is 1, but stream.leaf.urls names {len(leaf.urls)} members: write "
            "`replicas: 3`, as they have it; what this node makes first is made for all of them"
        )


def _check_cluster(settings: StreamSettings, cluster: ClusterSettings) -> None:
    if settings.type != "embedded":
        raise ConfigError(
            f"stream.cluster is set, but stream.type is {settings.type}: only embedded brokers "
            "form one; a node without data of its own is a leaf of them (stream.leaf)"
        )
    if not settings.folder:
        raise ConfigError(
            "stream.cluster is set, but stream.store_dir is empty: a member that forgets what it "
            "acknowledged could take its peers' mail along"
        )
    checked_cluster(cluster, settings.replicas)


def _check_url(url: str) -> None:
    for one in servers(url):
        parts = urlsplit(one if "://" in one else f"nats://{one}")
        if parts.scheme not in ("nats", "tls") or not parts.hostname:
            # The text itself may carry a password, so it is not repeated.
            raise ConfigError("stream.url must look like nats://host:4222 or tls://host:4222")


def servers(url: str) -> list[str]:
    """The addresses of a `url`, in its order."""
    return [one.strip() for one in url.split(",") if one.strip()]
