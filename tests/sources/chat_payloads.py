"""Our own small payloads of the chats' shapes, the shared ones, and how each is to be read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from crewlet.sources import Notification, Skip, parse

OWN = Path(__file__).parent / "fixtures" / "chat"
ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("CREWLET_WEBHOOK_DATA") or ROOT.parent / "shared/data/webhooks")
JSON = {"Content-Type": "application/json"}
CHATS = ("slack", "mattermost")


def own(vendor: str) -> dict[str, dict[str, Any]]:
    """Payload and expectation by name."""
    return json.loads((OWN / f"{vendor}.json").read_text())


def payload(vendor: str, name: str) -> Any:
    return own(vendor)[name]["payload"]


def read_all(vendor: str, value: object) -> list[Notification | Skip]:
    return parse(vendor, JSON, json.dumps(value).encode())


def read(vendor: str, value: object) -> Notification:
    """The reading of a payload: the first of what is parsed, a skip may stand behind it."""
    first = read_all(vendor, value)[0]
    assert isinstance(first, Notification), first
    return first


def read_own(vendor: str, name: str) -> Notification:
    return read(vendor, payload(vendor, name))


def shared_rows(vendor: str) -> dict[str, dict[str, Any]]:
    """The rows of the shared expect.json by file name, none where the data is not there."""
    if not SHARED.is_dir():
        return {}
    rows = json.loads((SHARED / "expect.json").read_text())
    return {
        name.removeprefix(f"{vendor}/"): row
        for name, row in rows.items()
        if name.startswith(f"{vendor}/")
    }


def facts(found: Notification) -> dict[str, object]:
    """What a row says of a notification; keys without the source in front."""
    return {
        "event": found.event_type,
        "key": found.partition_key.removeprefix(f"{found.source}:"),
        "identity": found.conversation_identity.removeprefix(f"{found.source}:"),
        "sender": found.sender,
        "addressed": list(found.addressed),
        "verdict": found.verdict.upper(),
    }
