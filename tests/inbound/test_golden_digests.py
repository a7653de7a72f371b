"""Digests of real payloads, as they were read by eye once: of the project's own fixtures, and of
the open payloads where their folder is. They are written anew with

    CREWLET_WRITE_GOLDEN=1 python -m pytest tests/inbound/test_golden_digests.py

and whoever does so reads what has changed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from digests import ALONE, SOURCES, VENDORS, alone, digest, own, partitions, shared, text_of
from vendor_payloads import SHARED

from crewlet.inbound.coalesce import SAID_AGAIN, SUPERSEDED, TO_YOU
from crewlet.sources import Notification

GOLDEN = Path(__file__).parent / "golden"
OPEN = GOLDEN / "open"
WRITE = "CREWLET_WRITE_GOLDEN"

shared_only = pytest.mark.skipif(
    not SHARED.is_dir(),
    reason=f"the open payloads are not at {SHARED}; CREWLET_WEBHOOK_DATA names their folder",
)


def assert_kept(kept: Path, text: str) -> None:
    if os.environ.get(WRITE):
        kept.write_bytes(text.encode())
    assert text == kept.read_bytes().decode(), f"{WRITE}=1 writes {kept.name} anew"


@pytest.mark.certifies(97, 99, 100, 101)
@pytest.mark.parametrize("source", SOURCES)
def test_the_digests_of_a_source_read_as_they_did(source: str) -> None:
    text = text_of(partitions(own(source)))
    assert text, f"no conversation of several messages among the fixtures of {source}"
    assert_kept(GOLDEN / f"{source}.md", text)


@shared_only
@pytest.mark.certifies(97, 99, 100, 101)
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_digests_of_the_open_payloads_read_as_they_did(vendor: str) -> None:
    """Every conversation of several messages; and whatever else wakes somebody, as one."""
    found = shared(vendor)
    assert_kept(OPEN / f"{vendor}.md", text_of({**partitions(found), ALONE: alone(found)}))


@pytest.mark.parametrize("kept", sorted(GOLDEN.rglob("*.md")), ids=lambda path: path.stem)
def test_no_kept_digest_shows_how_it_was_made(kept: Path) -> None:
    """No markup of a page, no word of Python's for nothing, no bullet or bracket without a text."""
    prose = re.sub(r"<@\w+>|<!-- .* -->", "", kept.read_text())
    made = re.compile(
        r"</?[a-z][^>]*>|&(?:amp|lt|gt|nbsp|quot|#\d+);|\bNone\b(?! of them)"
        r"|\(\)|^- *$|: *\)|^\*\*\*\*|_(?:at|ids?)\b(?! )",
        re.MULTILINE,
    )
    assert not made.findall(prose)


def test_each_shape_of_a_digest_is_among_the_kept() -> None:
    text = "\n".join(path.read_text() for path in GOLDEN.rglob("*.md"))
    shapes = (SUPERSEDED, SAID_AGAIN, f"· {TO_YOU}\n", "  ```", "你好", "\n\n  > ", "[file] ")
    missing = [shape for shape in shapes if shape not in text]
    assert not missing


@shared_only
def test_of_the_open_payloads_every_text_is_in_its_digest() -> None:
    """What is not superseded and not said again stands there, line by line."""
    conversations: dict[str, list[Notification]] = {}
    for vendor in VENDORS:
        conversations |= partitions(shared(vendor))
    assert len(conversations) > 5
    for key, notifications in conversations.items():
        text = digest(notifications)
        assert text.startswith(f"## {len(notifications)} messages in one conversation"), key
        assert text.endswith(notifications[-1].body), key
        for one in notifications[:-1]:
            wanted = [one.lead] if one.lead else one.body.splitlines()
            missing = [line for line in wanted if line.strip() not in text]
            assert not missing, f"{key}: {missing}"
