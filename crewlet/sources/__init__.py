"""Deliveries from outside, read: who did what, in which conversation, addressing whom.

The edge's order: `verify` (else 401), `readable` (else 400), publish the exact bytes. The router
calls `parse` on them. Everything here is pure; headers are looked up whatever their case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crewlet.sources import registry
from crewlet.sources.content import Unreadable
from crewlet.sources.notification import Notification, Parsed, Skip, Verdict
from crewlet.sources.phrases import NO_PARSER, UNREADABLE_PAYLOAD
from crewlet.sources.registry import contact_kind, kept_headers, vendors
from crewlet.sources.reply import Reply

__all__ = [
    "Notification",
    "Parsed",
    "Reply",
    "Skip",
    "Unreadable",
    "Verdict",
    "contact_kind",
    "decode",
    "delivery_key",
    "kept_headers",
    "key_of",
    "parse",
    "published",
    "readable",
    "reply",
    "vendors",
    "verify",
]


def parse(vendor: str, headers: Mapping[str, str], body: bytes) -> list[Parsed]:
    """What a delivery says. Never raises on what a vendor may send, never empty."""
    source = registry.find(vendor)
    if source is None:
        return [Skip(source=vendor, reason=NO_PARSER, detail=f"no source is named {vendor!r}")]
    try:
        payload = source.decode(headers, body)
    except Unreadable as error:
        return [Skip(source=vendor, reason=UNREADABLE_PAYLOAD, detail=str(error))]
    return source.parse(headers, payload)


def verify(vendor: str, headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    """Whether the vendor signed exactly these bytes, compared in constant time."""
    source = registry.find(vendor)
    return source is not None and source.verify(headers, body, secret)


def delivery_key(vendor: str, headers: Mapping[str, str], body: bytes = b"") -> str:
    """The vendor's own id of the delivery, '' where it sends none. Chats name it in the body."""
    if registry.keyed(vendor) is None:
        return key_of(vendor, headers, None)
    try:
        return key_of(vendor, headers, decode(vendor, headers, body))
    except Unreadable:
        return ""


def key_of(vendor: str, headers: Mapping[str, str], payload: object) -> str:
    """The same of a body that is decoded already."""
    if keyed := registry.keyed(vendor):
        return keyed.payload_key(headers, payload)
    source = registry.find(vendor)
    return source.delivery_key(headers) if source else ""


def reply(vendor: str, payload: object) -> Reply | None:
    """What the vendor wants to hear of a verified delivery; None for the edge's own answer."""
    source = registry.replying(vendor)
    return source.reply(payload) if source else None


def published(vendor: str, body: bytes) -> bytes:
    """The bytes to publish: the exact ones, without a token that stands among them."""
    source = registry.tokened(vendor)
    return source.published(body) if source else body


def decode(vendor: str, headers: Mapping[str, str], body: bytes) -> Any:
    """The decoded body. Raises Unreadable with a sentence for whoever set up the hook."""
    source = registry.find(vendor)
    if source is None:
        raise Unreadable(f"no source is named {vendor!r}; known: {', '.join(vendors())}")
    return source.decode(headers, body)


def readable(vendor: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the body is the format that it claims to be: an edge answers 400 where not."""
    try:
        decode(vendor, headers, body)
    except Unreadable:
        return False
    return True
