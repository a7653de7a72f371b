"""The keys of a node file's `stream:` block, and of the tables in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from crewlet.broker import settings as stream
from crewlet.company.key import Key, Section

_STREAM: Final = {
    "type": Key(
        shape="line",
        default="embedded",
        choices=get_args(stream.Kind),
        example="nats",
        about="A broker of this node's own, a NATS server elsewhere, or one in memory.",
    ),
    "store_dir": Key(
        shape="line",
        default="stream",
        example="/var/lib/acme/stream",
        may_be_empty=True,
        about="Folder of an embedded broker, below the data folder; '' keeps mail in memory.",
    ),
    "sync": Key(
        shape="line",
        default="always",
        choices=get_args(stream.Sync),
        example="interval",
        about="When an acknowledged write is on the disk: at once, or within two minutes.",
    ),
    "url": Key(
        shape="line",
        example="nats://${NATS_HOST}:4222",
        about="The servers of `type: nats`, separated by commas.",
    ),
    "replicas": Key(
        shape="integer",
        default="1",
        minimum=1,
        maximum=5,
        example="3",
        about="Servers that hold each message: 1, 3 or 5.",
    ),
    "event_retention_hours": Key(
        shape="integer",
        default="720",
        minimum=1,
        maximum=87600,
        example="168",
        about="How long the record of events is kept.",
    ),
    "cluster": Key(
        shape="table", of="cluster", about="Embedded brokers of several nodes that form one."
    ),
    "leaf": Key(
        shape="table",
        of="leaf",
        about="The members that this node, which keeps no data, carries to and from.",
    ),
}

_CLUSTER: Final = {
    "name": Key(shape="line", default="crewlet", example="acme", about="The cluster's name."),
    "host": Key(
        shape="line",
        default="127.0.0.1",
        example="10.0.0.1",
        about="Address where this member listens for the others.",
    ),
    "port": Key(
        shape="integer",
        default="6222",
        minimum=1,
        maximum=65535,
        example="6301",
        about="Port where this member listens for the others.",
    ),
    "client_port": Key(
        shape="integer",
        default="0",
        minimum=0,
        maximum=65535,
        example="4222",
        about="Port for clients on other hosts, on the same address; 0 takes none.",
    ),
    "leaf_port": Key(
        shape="integer",
        default="0",
        minimum=0,
        maximum=65535,
        example="7422",
        about="Port for nodes without data of their own, on the same address; 0 takes none.",
    ),
    "peers": Key(
        shape="lines",
        example="[node-1:6222, node-2:6222, node-3:6222]",
        about="All members, this one included: 1, 3 or 5.",
    ),
    "secret_file": Key(
        shape="line",
        default="CREWLET_CLUSTER_SECRET",
        example="/etc/crewlet/cluster.secret",
        about="File with the secret that all members share; else the variable holds it.",
    ),
    "leaf_secret_file": Key(
        shape="line",
        default="CREWLET_LEAF_SECRET",
        example="/etc/crewlet/leaf.secret",
        about="File with the secret that leaves prove themselves by; else the variable holds it.",
    ),
    "tls": Key(shape="table", of="tls", about="Members and leaves are spoken to over TLS."),
}

_TLS: Final = {
    "cert": Key(
        shape="line",
        required=True,
        example="/etc/crewlet/node-1.pem",
        about="This member's certificate, for the name or address that its peers dial.",
    ),
    "key": Key(
        shape="line",
        required=True,
        example="/etc/crewlet/node-1.key",
        about="Its key, mode 0600.",
    ),
    "ca": Key(
        shape="line",
        required=True,
        example="/etc/crewlet/ca.pem",
        about="The authority that signed the certificates of all members.",
    ),
}

_LEAF: Final = {
    "urls": Key(
        shape="lines",
        required=True,
        example="[node-1:7422, node-2:7422, node-3:7422]",
        about="Where the members take leaves: their host:leaf_port.",
    ),
    "secret_file": Key(
        shape="line",
        default="CREWLET_LEAF_SECRET",
        example="/etc/crewlet/leaf.secret",
        about="File with the secret that the members take leaves by; else the variable holds it.",
    ),
    "ca": Key(
        shape="line",
        example="/etc/crewlet/ca.pem",
        about="The authority that signed the members' certificates: they are spoken to over TLS.",
    ),
}

STREAM_SECTIONS: Final[Mapping[str, Section]] = {
    "stream": _STREAM,
    "cluster": _CLUSTER,
    "tls": _TLS,
    "leaf": _LEAF,
}
