"""Our own small payloads of GitHub's shapes, and how each is to be read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from crewlet.sources import Notification, decode, parse
from crewlet.sources.github_rules import addressed

OWN = Path(__file__).parent / "fixtures" / "github"
ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("CREWLET_WEBHOOK_DATA") or ROOT.parent / "shared/data/webhooks")


def headers(event: str, content_type: str = "application/json") -> dict[str, str]:
    return {
        "Content-Type": content_type,
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": "0f0e0d0c-0000-4000-8000-000000000001",
    }


def own_names() -> list[str]:
    return sorted(path.name for path in OWN.glob("*__*.json"))


def event_of(file_name: str) -> str:
    return file_name.split("__")[0]


def body(file_name: str) -> bytes:
    return (OWN / file_name).read_bytes()


def payload(file_name: str) -> dict[str, Any]:
    return json.loads(body(file_name))


def expected(folder: Path, prefix: str = "") -> dict[str, dict[str, Any]]:
    """The rows of a folder's expect.json by file name."""
    rows = json.loads((folder / "expect.json").read_text())
    return {name.removeprefix(prefix): row for name, row in rows.items() if prefix in name}


def notify(file_name: str) -> Notification:
    return read(event_of(file_name), payload(file_name))


def read(event: str, value: object) -> Notification:
    [parsed] = parse("github", headers(event), json.dumps(value).encode())
    assert isinstance(parsed, Notification), parsed
    return parsed


def assert_as_expected(sent: dict[str, str], data: bytes, row: dict[str, Any]) -> None:
    """One delivery against its row: event, key, sender, addressed and verdict, exactly."""
    [read_as] = parse("github", sent, data)
    assert isinstance(read_as, Notification), read_as
    value = decode("github", sent, data)
    called = addressed(sent["X-GitHub-Event"], value.get("action", ""), value)
    sender = row["sender"].removesuffix(" (Bot)")
    key = f"github:{row['key']}" if row["key"] else ""
    assert {
        "event": read_as.event_type,
        "key": read_as.partition_key,
        "identity": read_as.conversation_identity,
        "sender": read_as.sender,
        "called": list(called),
        "addressed": list(read_as.addressed),
        "verdict": read_as.verdict.upper(),
    } == {
        "event": row["event"],
        "key": key,
        "identity": key,
        "sender": sender,
        "called": row["addressed"],
        "addressed": [who for who in row["addressed"] if who.casefold() != sender.casefold()],
        "verdict": row["verdict"],
    }
