"""Digests of payloads as vendors send them: all that a source's fixtures say of one conversation,
as if it had waited for a seat that was busy."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
from inbound_bench import START

from crewlet.events import Event, Trace
from crewlet.events.types import ExternalNotification
from crewlet.inbound.coalesce import coalesce
from crewlet.sources import Notification, Parsed, parse

# The payloads live with the tests of their sources, and each folder of tests is a world of its own.
sys.path.append(str(Path(__file__).parents[1] / "sources"))

import chat_payloads
import github_payloads
import vendor_payloads

SOURCES = ("github", "gitlab", "jira", "confluence", "plane", "slack", "mattermost")


def own(source: str) -> Iterable[Parsed]:
    """What the project's own fixtures of a source are read as, in the order of their names."""
    if source == "github":
        for name in github_payloads.own_names():
            sent = github_payloads.headers(github_payloads.event_of(name))
            yield from parse(source, sent, github_payloads.body(name))
    elif source in chat_payloads.CHATS:
        for name in chat_payloads.own(source):
            yield from chat_payloads.read_all(source, chat_payloads.payload(source, name))
    else:
        for given in vendor_payloads.own(source):
            yield from parse(source, given.headers, given.body)


def partitions(parsed: Iterable[Parsed]) -> dict[str, list[Notification]]:
    """What wakes somebody, by conversation: those of several."""
    found: dict[str, list[Notification]] = defaultdict(list)
    for one in parsed:
        if isinstance(one, Notification) and one.verdict in ("wake", "follow"):
            found[one.partition_key].append(one)
    return {key: of_one for key, of_one in found.items() if key and len(of_one) > 1}


def digest(notifications: Sequence[Notification]) -> str:
    """The text that a handler would read: one a minute, in their order."""
    return coalesce([_event(minute, one) for minute, one in enumerate(notifications)]).digest


def text_of(found: Mapping[str, Sequence[Notification]]) -> str:
    """The digests of a source, one after the other, each under its partition key."""
    parts = (f"<!-- {key} -->\n\n{digest(of_one)}\n" for key, of_one in sorted(found.items()))
    return "\n\n".join(parts)


def _event(minute: int, notification: Notification) -> Event:
    body = ExternalNotification(notification=msgspec.to_builtins(notification))
    return Event.new(
        "external_notification",
        id=f"e{minute}",
        at=START + timedelta(minutes=minute),
        trace=Trace.root(),
        source=notification.source,
        body=body,
    )
