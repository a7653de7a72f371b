"""Digests of payloads as vendors send them: all that a source's deliveries say of one
conversation, as if it had waited for a seat that was busy."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeGuard

import msgspec
from inbound_bench import START

from crewlet.company import parse_company
from crewlet.events import Event, Trace
from crewlet.events.types import ExternalNotification
from crewlet.inbound.coalesce import coalesce
from crewlet.sources import Notification, Parsed, parse
from crewlet.sources.edge_facts import RULE
from crewlet.sources.generic_rule import PREFIX
from crewlet.sources.generic_rule import written as rule_written

# The payloads live with the tests of their sources, and each folder of tests is a world of its own.
sys.path.append(str(Path(__file__).parents[1] / "sources"))

import chat_payloads
import github_payloads
import vendor_payloads

VENDORS = ("github", "gitlab", "jira", "confluence", "plane", "slack", "mattermost")
SOURCES = (*VENDORS, "generic")
GENERIC = Path(__file__).parent / "generic"
"""A company's file with two senders of its own, and what they sent, one after the other."""

ALONE = "whatever stands alone, as if it were one conversation"


def own(source: str) -> Iterable[Parsed]:
    """What the project's own fixtures of a source are read as, in the order of their names."""
    if source == "generic":
        yield from _generic()
    elif source == "github":
        for name in github_payloads.own_names():
            sent = github_payloads.headers(github_payloads.event_of(name))
            yield from parse(source, sent, github_payloads.body(name))
    elif source in chat_payloads.CHATS:
        for name in chat_payloads.own(source):
            yield from chat_payloads.read_all(source, chat_payloads.payload(source, name))
    else:
        for given in vendor_payloads.own(source):
            yield from parse(source, given.headers, given.body)


def _generic() -> Iterable[Parsed]:
    """Read by the rules of the company's file, which the edge puts beside the headers."""
    company = parse_company((GENERIC / "company.yaml").read_bytes(), env={"SECRET": "between us"})
    for each in json.loads((GENERIC / "deliveries.json").read_text()):
        source = each["source"]
        rule = company.integrations.generic[source.removeprefix(PREFIX)].rule
        sent = {"Content-Type": "application/json", RULE: rule_written(rule)}
        yield from parse(source, sent, json.dumps(each["payload"]).encode())


def shared(source: str) -> list[Notification]:
    """What the open payloads of a vendor say to somebody, in the order in which it happened; what
    comes twice by the vendor's own word is there once, as a seat is woken by it once."""
    found: dict[str, Notification] = {}
    for path in sorted((vendor_payloads.SHARED / source).glob("*__*")):
        sent = vendor_payloads.sent(source, path.name)
        for at, one in enumerate(parse(source, sent, path.read_bytes())):
            if _wakes(one):
                found.setdefault(one.occurrence or f"{path.name} {at}", one)
    return sorted(found.values(), key=_happened)


def _happened(notification: Notification) -> datetime:
    stated = notification.metadata.get("timestamp")
    return msgspec.convert(stated, datetime).astimezone(UTC) if stated else START


def partitions(parsed: Iterable[Parsed]) -> dict[str, list[Notification]]:
    """What wakes somebody, by conversation: those of several."""
    return {key: of_one for key, of_one in _by_key(parsed).items() if len(of_one) > 1}


def alone(parsed: Iterable[Parsed]) -> list[Notification]:
    """What else wakes somebody: each the only one of its conversation."""
    return [of_one[0] for of_one in _by_key(parsed).values() if len(of_one) == 1]


def _by_key(parsed: Iterable[Parsed]) -> dict[str, list[Notification]]:
    found: dict[str, list[Notification]] = defaultdict(list)
    for one in parsed:
        if _wakes(one) and one.partition_key:
            found[one.partition_key].append(one)
    return found


def _wakes(one: Parsed) -> TypeGuard[Notification]:
    return isinstance(one, Notification) and one.verdict in ("wake", "follow")


def digest(notifications: Sequence[Notification]) -> str:
    """The text that a handler would read: one a minute, in their order."""
    return coalesce([_event(minute, one) for minute, one in enumerate(notifications)]).digest


def text_of(found: Mapping[str, Sequence[Notification]]) -> str:
    """The digests of a source, one after the other, each under its partition key."""
    several = [(key, found[key]) for key in sorted(found) if len(found[key]) > 1]
    parts = (f"<!-- {key} -->\n\n{digest(of_one)}\n" for key, of_one in several)
    return "\n\n".join(parts)


def _event(minute: int, notification: Notification) -> Event:
    why = "addressed" if notification.verdict == "wake" else "follower"
    body = ExternalNotification(notification=msgspec.to_builtins(notification), why=why)
    return Event.new(
        "external_notification",
        id=f"e{minute}",
        at=START + timedelta(minutes=minute),
        trace=Trace.root(),
        source=notification.source,
        body=body,
    )
