"""Payloads of GitLab, Jira, Confluence and Plane, and how each is to be read.

Our own stand in fixtures/VENDOR, with the headers they come under and the row they have to give;
others where `CREWLET_WEBHOOK_DATA` says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from github_payloads import SHARED

from crewlet.sources import (
    Notification,
    confluence_rules,
    gitlab_rules,
    jira_rules,
    parse,
    plane_rules,
)
from crewlet.sources.edge_facts import PATH_EVENT

OWN = Path(__file__).parent / "fixtures"
VENDORS = ("gitlab", "jira", "confluence", "plane")
NO_EVENT = "(none)"
WORK = "775c5716-0000-4617-bb9f-2cd843911268"


class Delivery(NamedTuple):
    """One file: what arrives, and the row it has to give."""

    vendor: str
    name: str
    headers: dict[str, str]
    body: bytes
    row: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.vendor}/{self.name}"


def own(vendor: str = "") -> list[Delivery]:
    """Our own fixtures of one vendor or of all."""
    return [each for name in VENDORS if vendor in ("", name) for each in _own(name)]


def shared() -> list[Delivery]:
    """The files of the shared folder, none where it is absent."""
    if not SHARED.is_dir():
        return []
    rows = json.loads((SHARED / "expect.json").read_text())
    return [
        Delivery(vendor, name, sent(vendor, name), (SHARED / path).read_bytes(), row)
        for path, row in rows.items()
        for vendor, name in [path.split("/")]
        if vendor in VENDORS
    ]


def sent(vendor: str, name: str) -> dict[str, str]:
    """The headers of a shared file, and the event where only the URL says it. A frame of a
    websocket has none."""
    known = json.loads((SHARED / vendor / "headers.json").read_text())
    paths = SHARED / vendor / "paths.json"
    path = json.loads(paths.read_text()).get(name, "") if paths.is_file() else ""
    before = f"/webhooks/{vendor}/"
    named = {PATH_EVENT: path.removeprefix(before)} if path.startswith(before) else {}
    return {"Content-Type": "application/json", **known.get(name, {}), **named}


def delivery(path: str) -> Delivery:
    """Our own fixture `VENDOR/NAME`, without its suffix."""
    vendor, _, name = path.partition("/")
    [found] = [each for each in _own(vendor) if each.name == f"{name}.json"]
    return found


def payload(path: str) -> dict[str, Any]:
    return json.loads(delivery(path).body)


def read(path: str, value: object = None) -> Notification:
    """How our fixture is read, or another value under its headers."""
    given = delivery(path)
    body = given.body if value is None else json.dumps(value).encode()
    [parsed] = parse(given.vendor, given.headers, body)
    assert isinstance(parsed, Notification), parsed
    return parsed


def assert_as_expected(given: Delivery) -> None:
    """Event, key, identity, sender, addressed (the sender included) and verdict, exactly."""
    value, row = json.loads(given.body), given.row
    [found] = parse(given.vendor, given.headers, given.body)
    assert isinstance(found, Notification), found
    key = f"{given.vendor}:{row['key']}" if row["key"] else ""
    own_names = {name.casefold() for name in _senders(given, value)}
    assert {
        "event": _EVENT[given.vendor](given.headers, value, found),
        "key": found.partition_key,
        "identity": found.conversation_identity,
        "sender": found.sender,
        "called": [name for name in dict.fromkeys(_called(given, value)) if name],
        "addressed": list(found.addressed),
        "verdict": found.verdict.upper(),
    } == {
        "event": row["event"],
        "key": key,
        "identity": key,
        "sender": row["sender"] or "unknown",
        "called": row["addressed"],
        "addressed": [who for who in row["addressed"] if who.casefold() not in own_names],
        "verdict": row["verdict"],
    }


def _own(vendor: str) -> Iterator[Delivery]:
    rows = json.loads((OWN / vendor / "expect.json").read_text())
    for name, row in rows.items():
        body = (OWN / vendor / name).read_bytes()
        yield Delivery(vendor, name, row["headers"], body, row)


def _called(given: Delivery, value: Any) -> list[str]:
    match given.vendor:
        case "gitlab":
            return list(gitlab_rules.addressed(value))
        case "jira":
            return list(jira_rules.addressed(value))
        case "confluence":
            event = confluence_rules.event(given.headers, value)
            return list(confluence_rules.addressed(event, value))
    return list(plane_rules.addressed(plane_rules.event(given.headers, value), value))


def _senders(given: Delivery, value: Any) -> tuple[str, ...]:
    match given.vendor:
        case "gitlab":
            return gitlab_rules.sender(value)
        case "jira":
            return jira_rules.sender(value)
        case "confluence":
            return confluence_rules.sender(value)
    return plane_rules.sender(plane_rules.event(given.headers, value), value)


def _gitlab_event(headers: Mapping[str, str], value: Any, found: Notification) -> str:
    about = found.metadata.get("noteable_type")
    return f"{headers['X-Gitlab-Event']} / {found.event_type}" + (f" on {about}" if about else "")


def _jira_event(headers: Mapping[str, str], value: Any, found: Notification) -> str:
    finer = found.metadata.get("issue_event")
    assert found.event_type == value["webhookEvent"].removeprefix("jira:")
    return f"{value['webhookEvent']} / {finer}" if finer else value["webhookEvent"]


_EVENT: dict[str, Callable[[Mapping[str, str], Any, Notification], str]] = {
    "gitlab": _gitlab_event,
    "jira": _jira_event,
    "confluence": lambda _, value, found: found.metadata["event"],
    "plane": lambda _, value, found: f"{found.event_type} ({found.metadata['version']})",
}
