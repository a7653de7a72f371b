"""Digests of real payloads, as they were read by eye once. They are written anew with

    CREWLET_WRITE_GOLDEN=1 python -m pytest tests/inbound/test_golden_digests.py

and whoever does so reads what has changed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from digests import SOURCES, digest, own, partitions, text_of
from vendor_payloads import SHARED

from crewlet.sources import Notification, decode, parse
from crewlet.sources.content import Unreadable

GOLDEN = Path(__file__).parent / "golden"
WRITE = "CREWLET_WRITE_GOLDEN"


@pytest.mark.certifies(97, 99, 100, 101)
@pytest.mark.parametrize("source", SOURCES)
def test_the_digests_of_a_source_read_as_they_did(source: str) -> None:
    text = text_of(partitions(own(source)))
    assert text, f"no conversation of several messages among the fixtures of {source}"
    kept = GOLDEN / f"{source}.md"
    if os.environ.get(WRITE):
        kept.write_bytes(text.encode())
    assert text == kept.read_bytes().decode(), f"{WRITE}=1 writes {kept.name} anew"


def shared() -> dict[str, list[Notification]]:
    """The conversations of the shared payloads; a body that is no JSON needs headers of its own."""
    found = []
    for path in sorted(SHARED.glob("*/*")):
        sent = {"Content-Type": "application/json", "X-GitHub-Event": path.name.split("__")[0]}
        try:
            decode(path.parent.name, sent, path.read_bytes())
        except Unreadable:
            continue
        found += parse(path.parent.name, sent, path.read_bytes())
    return partitions(found)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared payloads are not here")
def test_of_the_shared_payloads_every_text_is_in_its_digest() -> None:
    """What is not superseded and not said again stands there, line by line."""
    conversations = shared()
    assert len(conversations) > 5
    for key, notifications in conversations.items():
        text = digest(notifications)
        assert text.startswith(f"## {len(notifications)} messages in one conversation"), key
        assert text.endswith(notifications[-1].body), key
        for one in notifications[:-1]:
            wanted = [one.lead] if one.lead else one.body.splitlines()
            missing = [line for line in wanted if line.strip() not in text]
            assert not missing, f"{key}: {missing}"
