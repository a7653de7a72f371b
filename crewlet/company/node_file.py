"""The settings of one node: where its broker is, where it listens, what it is called.

They belong to a machine, not to the company: a fleet has one company file and many of these.
The data folder is no key here; it is given on the command line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, convert, field

from actors.machines.timing import LONGEST_TTL_S, Timing, scaled
from crewlet.broker import settings as stream
from crewlet.broker.cluster import SECRET_VARIABLE
from crewlet.broker.leaf import LEAF_SECRET_VARIABLE
from crewlet.broker.settings import StreamSettings
from crewlet.company.key import Key, Section
from crewlet.company.load import read_source
from crewlet.company.problems import FileRefused, Mark, Problem, Report, shown
from crewlet.company.record import Reader, Record, is_filter
from crewlet.company.stream_keys import STREAM_SECTIONS
from crewlet.company.yaml import read_yaml
from crewlet.errors import ConfigError
from crewlet.topics import is_handle

NODE_ID: Final = "node-0"
NODE_ID_VARIABLE: Final = "CREWLET_NODE_ID"
LONGEST_DRAIN_S: Final = 3600
NODE_ROLES: Final = ("data", "ingress", "seats", "workers")
"""What a node may be for its fleet; one that names none of them is all of them."""


class ApiSettings(Struct, frozen=True, kw_only=True):
    """Where webhooks and reads are answered; port 0 takes any free one."""

    host: str = "127.0.0.1"
    port: int = 8400


class NodeIdentity(Struct, frozen=True, kw_only=True):
    """What the node is called, how many turns it runs at once, and what it is fit for."""

    id: str = NODE_ID
    max_concurrent: int = 16
    labels: Mapping[str, str] = field(default_factory=dict)
    roles: tuple[str, ...] = ()


class NodeSettings(Struct, frozen=True, kw_only=True):
    """One node. `drain_timeout_s` is how long running turns may go on once it has to stop."""

    debug: bool = False
    stream: StreamSettings = field(default_factory=StreamSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    node: NodeIdentity = field(default_factory=NodeIdentity)
    drain_timeout_s: float = 30.0
    lease: Timing = field(default_factory=Timing)


_NODE_FILE: Final = {
    "debug": Key(shape="flag", default="false", example="true", about="Log in more detail."),
    "stream": Key(shape="table", of="stream", about="Where the broker runs."),
    "api": Key(shape="table", of="api", about="Where webhooks and reads are answered."),
    "node": Key(shape="table", of="node", about="What this node is."),
    "lease": Key(
        shape="table", of="lease", about="How soon a fleet takes over from a node that is silent."
    ),
    "drain_timeout_s": Key(
        shape="number",
        default="30",
        minimum=0,
        maximum=LONGEST_DRAIN_S,
        example="60",
        about="How many seconds running turns may go on once the node has to stop.",
    ),
}

_LEASE: Final = {
    "ttl_s": Key(
        shape="number",
        default="20",
        minimum=0.5,
        maximum=LONGEST_TTL_S,
        example="30",
        about="How many seconds a node is left alone that nobody hears of.",
    ),
    "renew_s": Key(
        shape="number",
        default="a quarter of ttl_s",
        minimum=0.05,
        maximum=LONGEST_TTL_S,
        example="6",
        about="Seconds between two signs of life; two of them fit into ttl_s - margin_s.",
    ),
    "margin_s": Key(
        shape="number",
        default="3/20 of ttl_s",
        minimum=0.01,
        maximum=LONGEST_TTL_S,
        example="4",
        about="How many seconds earlier the node itself stops, for clocks that run apart.",
    ),
}

_API: Final = {
    "host": Key(shape="line", default="127.0.0.1", example="::1", about="Address to bind."),
    "port": Key(
        shape="integer",
        default="8400",
        minimum=0,
        maximum=65535,
        example="8080",
        about="Port to bind; 0 takes any free one.",
    ),
}

_NODE: Final = {
    "id": Key(
        shape="line",
        default="CREWLET_NODE_ID, else node-0",
        example="node-1",
        about="The node's name, one for each node of a fleet.",
    ),
    "max_concurrent": Key(
        shape="integer",
        default="16",
        minimum=1,
        maximum=10_000,
        example="4",
        about="Turns that run at the same time.",
    ),
    "labels": Key(shape="filters", example="{zone: east}", about="What the node has to offer."),
    "roles": Key(
        shape="lines",
        default="all",
        choices=NODE_ROLES,
        example="[seats, workers]",
        about="What the node does for the fleet; agents are worked by nodes with `seats`.",
    ),
}

NODE_SECTIONS: Final[Mapping[str, Section]] = {
    "node file": _NODE_FILE,
    **STREAM_SECTIONS,
    "api": _API,
    "node": _NODE,
    "lease": _LEASE,
}


def load_node_settings(
    path: Path | None = None, env: Mapping[str, str] | None = None
) -> NodeSettings:
    """The settings of a file, or of none: then the defaults. ConfigError lists all problems."""
    report = Report(str(path) if path else "the environment")
    settings = _load(path, env, report)
    if report or settings is None:
        raise FileRefused(report.problems)
    return settings


def check_node_settings(path: Path, env: Mapping[str, str] | None = None) -> list[Problem]:
    """Everything that is wrong with a node file, in its order; empty where it loads."""
    report = Report(str(path))
    _load(path, env, report)
    return report.problems


def checked_settings(settings: NodeSettings, *, own_broker: bool = True) -> NodeSettings:
    """The settings themselves, also where no file was read for them; ConfigError naming the field
    that cannot be. `own_broker`: the node opens the broker that `stream` describes."""
    node = settings.node
    if not is_handle(node.id):
        raise ConfigError(f"node.id: {shown(node.id)} is no name for a node: {_ID_RULE}")
    if node.max_concurrent < 1:
        raise ConfigError(f"node.max_concurrent is {node.max_concurrent}: no turn would start")
    if not 0 <= settings.drain_timeout_s <= LONGEST_DRAIN_S:
        raise ConfigError(
            f"drain_timeout_s is {settings.drain_timeout_s}: 0 to {LONGEST_DRAIN_S} seconds"
        )
    for role in node.roles:
        if role not in NODE_ROLES:
            raise ConfigError(f"node.roles: {shown(role)} is none of {', '.join(NODE_ROLES)}")
    for name in node.labels:
        if not is_filter(name):
            raise ConfigError(f"node.labels: {shown(name)} is no name: small letters, digits, '_'")
    if own_broker:
        _check_roles(settings.stream, node.roles)
        stream.checked(settings.stream)
        if why := _unnamed(settings.stream, node.id):
            raise ConfigError(f"node.id: {why}")
    return settings


def _load(path: Path | None, env: Mapping[str, str] | None, report: Report) -> NodeSettings | None:
    env = os.environ if env is None else env
    source = b"" if path is None else read_source(path, report)
    table = None if source is None else read_yaml(source, report, may_be_empty=True)
    if table is None:
        return None
    return _settings(Reader(NODE_SECTIONS, env, report).record(table, "node file"), env, report)


def _settings(record: Record, env: Mapping[str, str], report: Report) -> NodeSettings:
    nothing = Record(Mark(), "")
    api, node = record.record("api") or nothing, record.record("node") or nothing
    broker = _stream(record, node.lines("roles"), env, report)
    name = _node_id(node, env, report)
    if why := _unnamed(broker, name):
        report.add(node.at("id")[0], "node.id", why)
    return NodeSettings(
        debug=record.flag("debug"),
        stream=broker,
        api=ApiSettings(host=api.line("host") or "127.0.0.1", port=int(api.number("port", 8400))),
        node=NodeIdentity(
            id=name,
            max_concurrent=int(node.number("max_concurrent", 16)),
            labels=node.filters("labels"),
            roles=node.lines("roles"),
        ),
        drain_timeout_s=float(record.number("drain_timeout_s", 30.0)),
        lease=_lease(record, report),
    )


def _stream(
    record: Record, roles: tuple[str, ...], env: Mapping[str, str], report: Report
) -> StreamSettings:
    block = record.record("stream")
    values = {} if block is None else _stream_values(block, env)
    if report:
        return StreamSettings()
    settings = convert(values, StreamSettings)
    try:
        _check_roles(settings, roles)
        return stream.checked(settings)
    except ConfigError as error:
        report.add((block or record).mark, "stream", str(error))
    return settings


def _stream_values(block: Record, env: Mapping[str, str]) -> dict[str, Any]:
    """The file's, and the secrets that the environment holds."""
    values, cluster, leaf = dict(block.values), block.record("cluster"), block.record("leaf")
    leaves = env.get(LEAF_SECRET_VARIABLE, "")
    if cluster is not None:
        values["cluster"] = {
            **_nested(cluster, "tls"),
            "secret": "" if cluster.line("secret_file") else env.get(SECRET_VARIABLE, ""),
            "leaf_secret": "" if cluster.line("leaf_secret_file") else leaves,
        }
    if leaf is not None:
        values["leaf"] = {**leaf.values, "secret": "" if leaf.line("secret_file") else leaves}
    return values


def _nested(record: Record, word: str) -> dict[str, Any]:
    """The values of a table, with those of a table in it."""
    inner = record.record(word)
    return dict(record.values) if inner is None else {**record.values, word: dict(inner.values)}


def _check_roles(settings: StreamSettings, roles: tuple[str, ...]) -> None:
    """A node with `data` keeps streams, and one without carries to those that do."""
    if settings.leaf is not None and "data" in roles:
        raise ConfigError(
            "node.roles names data, but a leaf (stream.leaf) keeps no streams: leave data out, or "
            "write stream.cluster instead"
        )
    embedded = settings.type == "embedded" and settings.leaf is None
    if embedded and roles and "data" not in roles:
        raise ConfigError(
            "node.roles does not name data, but an embedded broker keeps streams: add data, or "
            "make this node a leaf of the members (stream.leaf.urls)"
        )


def _lease(record: Record, report: Report) -> Timing:
    """The numbers given; of the others, the defaults in the proportions of these."""
    block = record.record("lease")
    if block is None:
        return Timing()
    given = {word: float(block.number(word, 0.0)) for word in _LEASE if word in block.values}
    try:
        return scaled(given.get("ttl_s"), given.get("renew_s"), given.get("margin_s"))
    except ValueError as error:
        if all(word in block.values for word in block.marks):  # else that is the cause
            report.add(block.mark, block.path, str(error))
        return Timing()


def _unnamed(settings: StreamSettings, name: str) -> str:
    """The default is every node's, and servers of one name do not let each other in."""
    peers = () if settings.cluster is None else settings.cluster.peers
    if name != NODE_ID or (settings.leaf is None and len(peers) < 2):
        return ""
    return (
        f"each node of a cluster has a name of its own, and {NODE_ID} is every node's: write "
        f"`node: {{id: ...}}`, or set {NODE_ID_VARIABLE}"
    )


_ID_RULE: Final = "small letters, digits, '-' and '_', at most 63"


def _node_id(node: Record, env: Mapping[str, str], report: Report) -> str:
    if node.has("id"):
        name = node.line("id")
        if name and not is_handle(name):
            report.add(*node.at("id"), f"{node.written('id')} is no name for a node: {_ID_RULE}")
        return name or NODE_ID
    name = env.get(NODE_ID_VARIABLE) or NODE_ID
    if not is_handle(name):
        report.add(
            node.mark,
            "node.id",
            f"{shown(name)} in {NODE_ID_VARIABLE} is no name for a node: {_ID_RULE}",
        )
    return name
