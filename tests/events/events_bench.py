"""What the tests of events share: the smallest event, and bytes that are none."""

from __future__ import annotations

import json

from hypothesis import settings

WIRE = {"id": "e1", "type": "x", "timestamp": "2026-03-01T10:00:00Z"}

thorough = settings(derandomize=True, max_examples=300, deadline=None)

DEEP = "[" * 100_000 + "]" * 100_000
CORRUPT = [
    b"",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"7",
    b'"text"',
    b"{}",
    json.dumps({**WIRE, "id": ""}).encode(),
    json.dumps({**WIRE, "type": ""}).encode(),
    json.dumps({**WIRE, "id": 7}).encode(),
    json.dumps({**WIRE, "timestamp": "yesterday"}).encode(),
    json.dumps({**WIRE, "timestamp": 7}).encode(),
    json.dumps({**WIRE, "delegation_depth": 1.5}).encode(),
    json.dumps({**WIRE, "payload": []}).encode(),
    json.dumps(WIRE).encode()[:-1],
    json.dumps(WIRE).encode() + b"x",
    json.dumps({**WIRE, "id": "\ud800"}).encode(),
    json.dumps({**WIRE, "\ud800": 1}).encode(),
    json.dumps({**WIRE, "text": "\ud800"}).encode(),
    json.dumps({**WIRE, "text": "\udc00"}).encode(),
    json.dumps(WIRE).encode()[:-1] + b',"x":"\xff"}',
    json.dumps(WIRE).encode()[:-1] + b',"x":"\xed\xa0\x80"}',
    json.dumps(WIRE).encode()[:-1] + f',"x":{DEEP}}}'.encode(),
    DEEP.encode(),
    json.dumps({**WIRE, "type": "x"}).encode("utf-16"),
]


def cut_into(noise: bytes) -> bytes:
    """An event with bytes in the wrong place."""
    text = json.dumps({**WIRE, "body": "hello", "n": 1}).encode()
    at = len(noise) * 3 % len(text)
    return text[:at] + noise + text[at + 1 :]
