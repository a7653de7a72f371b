"""How topics, groups and buckets are named in JetStream, and nowhere above this package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from actors.delivery import Mailbox
from crewlet import topics
from crewlet.broker.patterns import matches, namespace_of
from crewlet.coordination.store import Bucket

READABLE: Final = 180
"""The readable part of a consumer's name is cut to this; the digest tells names apart."""

REMEMBERED: Final = 2**15
"""Names that are not worked out again: those of 3,000 seats three times over."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")

AGENT: Final = "CREWLET_AGENT"
NOTIFICATIONS: Final = "CREWLET_NOTIFICATIONS"
EVENTS: Final = "CREWLET_EVENTS"
CONFIG: Final = "CREWLET_CONFIG"
DLQ: Final = "CREWLET_DLQ"

SUBJECTS: Final = {
    AGENT: topics.AGENT,
    NOTIFICATIONS: topics.NOTIFICATIONS,
    EVENTS: topics.EVENTS,
    CONFIG: topics.CONFIG,
    DLQ: topics.DEAD_LETTERS,
}
"""The streams that every broker has, and the one pattern of each."""


OPERATION: Final = "KV-Operation"
_GONE: Final = frozenset({"DEL", "PURGE"})

RETAINED: Final = {namespace_of(SUBJECTS[name]): name for name in (EVENTS, CONFIG)}
"""The streams that `recent` reads, by namespace."""


@lru_cache(REMEMBERED)
def consumer(mailbox: Mailbox) -> str:
    """`group__topic__digest`, with what JetStream does not take rewritten."""
    readable = f"{_safe(mailbox.group)}__{_safe(mailbox.topic)}"
    return f"{readable[:READABLE]}__{topics.digest(mailbox)}"


def may_read(name: str, topic: str) -> bool:
    """Whether a consumer of this name may be one of the topic: its name may have been cut."""
    return f"__{_safe(topic)}__" in name or len(name) > READABLE


@lru_cache(REMEMBERED)
def stream_of(topic: str) -> str:
    """The stream that keeps a topic: one of ours, or one made on demand for its namespace.

    ValueError for what is no topic or has a namespace that a rewrite would merge with another.
    """
    for name, pattern in SUBJECTS.items():
        if matches(pattern, topic):
            topics.namespace(topic)
            return name
    return on_demand(topics.namespace(topic))


def on_demand(namespace: str) -> str:
    """Upper case is the one rewrite: a namespace is in small letters, so none are merged."""
    return f"CREWLET_NS_{namespace.upper()}"


def subjects_on_demand(namespace: str) -> list[str]:
    """All subjects of a namespace that no stream of ours has."""
    return [one for one in topics.patterns_of(namespace) if one not in SUBJECTS.values()]


def bucket(name: str) -> str:
    """The stream of a bucket, or of the log that it shares."""
    return f"KV_crewlet_{name}"


def log_of(bucket: Bucket) -> str:
    return bucket.log or bucket.name


def keys_of(bucket: Bucket, key: str = ">") -> str:
    """The subject of a key in a bucket; of all keys without one."""
    shared = f"{bucket.log}." if bucket.log else ""
    return f"$KV.crewlet_{shared}{bucket.name}.{key}"


def keys_beginning(bucket: Bucket, prefix: str) -> str:
    """The narrowest subject that has all keys which begin so; it may have others too."""
    head, dot, _ = prefix.rpartition(".")
    return keys_of(bucket, f"{head}{dot}>")


def keys_in(log: str) -> str:
    """All that the stream of a bucket or a log keeps."""
    return f"$KV.crewlet_{log}.>"


def fence_of(log: str, key: str) -> str:
    """Where a batch leaves the fence that it showed, for no reader: in no bucket."""
    return f"$KV.crewlet_{log}.fences.{key}"


def is_marker(headers: Mapping[str, str]) -> bool:
    """What a deleted key has left behind."""
    return headers.get(OPERATION) in _GONE


def _safe(text: str) -> str:
    return _UNSAFE.sub("_", text)
