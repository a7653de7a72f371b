"""One revision: a company's file as it was applied, by whom and when, under a number."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from crewlet.company import Company

SHORT: Final = 12
"""Digits of a digest that a person is shown."""


class Revision(Struct, frozen=True, kw_only=True):
    """`number` rises by one with each that is applied. `source_text` is the file with its
    `${NAME}` references, never with what they stand for: each node fills them in from its own
    environment. `company` is the name, which agent ids derive from: it is the same in all."""

    number: int
    company: str
    digest: str
    by: str
    at: datetime
    source_text: str


def digest_of(text: str) -> str:
    """What tells two texts apart: the first 32 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def revision_of(company: Company, *, after: Revision | None, by: str, at: datetime) -> Revision:
    """The revision that this company's file would be."""
    return Revision(
        number=1 if after is None else after.number + 1,
        company=company.name,
        digest=digest_of(company.source_text),
        by=by,
        at=at,
        source_text=company.source_text,
    )


def encoded(revision: Revision) -> bytes:
    return msgspec.json.encode(revision)


def decoded(value: bytes) -> Revision | None:
    """None for what this build cannot read: it is some revision, and nobody here knows which."""
    try:
        return msgspec.json.decode(value, type=Revision)
    except (msgspec.MsgspecError, RecursionError):
        return None
